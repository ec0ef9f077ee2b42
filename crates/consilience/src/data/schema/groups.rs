//! Groups with effects: every one must lie on one shard.

use super::SchemaAgreement;
use crate::data::describe::Request;
use crate::data::effects::Effects;
use crate::data::facts::{Fact, MAX_LEVELS};
use crate::data::recipe::Variable;
use crate::{Error, Result};
use std::collections::HashMap;

impl SchemaAgreement<'_> {
    /// Notes which levels are on several shards.
    pub(super) fn learn_spread(&mut self, requests: &[Request], answers: &[Vec<Fact>]) {
        for (k, request) in requests.iter().enumerate() {
            let mut first: HashMap<&str, usize> = HashMap::new();
            for (shard, facts) in answers.iter().enumerate() {
                let Some(Fact::Levels(levels)) = facts.get(k) else { continue };
                for level in levels.list.iter().filter(|level| level.weight > 0.0) {
                    let known = *first.entry(&level.name).or_insert(shard);
                    if known != shard {
                        let found = (level.name.clone(), known, shard);
                        self.spread.entry(format!("{request:?}")).or_insert(found);
                    }
                }
            }
        }
    }

    /// What varies between groups, with scales settled. Every group must lie on one shard.
    pub(super) fn effects(&mut self, effects: &Effects) -> Result<Option<Effects>> {
        let group = self.settle(&effects.group)?;
        let levels = match &group {
            Some(group) => self.levels(group)?,
            None => None,
        };
        let slope = match &effects.slope {
            None => Some(None),
            Some(slope) => self.variable(slope)?.map(Some),
        };
        let (Some(group), Some(levels), Some(slope)) = (group, levels, slope) else {
            return Ok(None);
        };
        if levels.too_many {
            return Err(Error::input(format!(
                "{effects}: {group} has more than {MAX_LEVELS} distinct values, too many to see that each lies on one shard; take larger groups"
            )));
        }
        if let Some((level, one, other)) =
            self.spread.get(&format!("{:?}", Request::Levels(group.clone())))
        {
            return Err(Error::input(format!(
                "{effects}: the rows of {group} = \"{level}\" are on shard {one} and on shard {other}, and a group's effects can only be integrated out where all of its rows are; split by the groups, with by = \"column:{group}\" under [split], or, if these are two groups, give them two names"
            )));
        }
        let slope = match slope {
            None => None,
            Some(Variable::Number(expr)) => Some(expr),
            Some(_) => {
                return Err(Error::input(format!(
                    "{effects}: only the slope of a number can vary between groups; write (1 | {group}), or a column of 0 and 1 such as I(x == \"a\")"
                )));
            }
        };
        Ok(Some(Effects { slope, group, ..effects.clone() }))
    }
}
