//! Likelihoods under construction.

use super::chunks::{Away, chunk_rows, over_chunks};
use super::common::{Common, HasRoom};
use super::piece::{Piece, WholeModel};
use super::{Family, Likelihood, Model};
use crate::data::ShardData;
use crate::{Error, Result};
use std::ops::Range;

/// A likelihood of which those chunks are known that are views of rows which models have in common.
pub struct Begun {
    whole: WholeModel,
    data: ShardData,
    own: Vec<Option<f64>>,
    ranges: Vec<Range<usize>>,
    views: Vec<Option<Piece>>,
}

impl Begun {
    /// The likelihood of a model on a shard's rows, some of which it may have in common with others, in so
    /// far as there is room for these.
    pub fn new(
        model: &Model,
        data: &ShardData,
        common: Option<(&Common, HasRoom)>,
    ) -> Result<Begun> {
        let regression = model.regression().ok_or_else(|| {
            let message = format!("there is no likelihood `{}` here", model.likelihood_name());
            Error::numeric(message)
        })?;
        let ranges = data.batches(chunk_rows(regression.width()));
        // Coefficients that are held fixed make an offset of the model's own.
        let has_fixed = model.coefficients().iter().any(|p| p.prior.fixed().is_some());
        let common = common.filter(|_| !has_fixed);
        let view = |k: usize| {
            common.and_then(|(common, room)| common.view(regression, ranges[k].clone(), room))
        };
        Ok(Begun {
            views: over_chunks(ranges.len(), view),
            whole: WholeModel::new(regression, model.coefficients()),
            data: data.clone(),
            own: model.own_parameters().iter().map(|p| p.prior.fixed()).collect(),
            ranges,
        })
    }

    /// The most bytes that the rest can take.
    pub fn most_memory(&self) -> usize {
        let columns = self.whole.columns();
        if self.whole.family() == Family::Gaussian {
            return 3 * columns * columns * size_of::<f64>();
        }
        let rest = self.ranges.iter().zip(&self.views).filter(|(_, view)| view.is_none());
        // The columns; offset, count and total of every row; the columns' numbers.
        rest.map(|(rows, _)| (rows.len() + 8) * (columns + 4) * size_of::<f64>()).sum()
    }

    /// Builds the rest, with rows that are the model's own. An outcome that the family cannot have is an
    /// error that names its place. Chunks of rows stay in memory if `room` says so, which is told how many
    /// bytes they take; others are fetched again whenever they are needed.
    pub fn finish(self, room: HasRoom) -> Result<Likelihood> {
        let Begun { whole, data, own: fixed, ranges, views } = self;
        let own = over_chunks(ranges.len(), |k| {
            if views[k].is_some() {
                return Ok(None);
            }
            let mut piece = Piece::of(&whole, &*data.batch(ranges[k].clone())?)?;
            piece.keep_if(room);
            Ok(Some(piece))
        });
        let own: Vec<Option<Piece>> = own.into_iter().collect::<Result<_>>()?;
        let pieces = views.into_iter().zip(own).filter_map(|(view, own)| view.or(own)).collect();
        let family = whole.family();
        let away = Away { whole, data, ranges };
        Ok(Likelihood::of_pieces(pieces, family, fixed, Some(away)))
    }
}
