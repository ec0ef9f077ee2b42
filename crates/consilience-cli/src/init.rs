//! A study file for data that has none.

use crate::arguments::InitArguments;
use consilience::Result;

pub fn write(_arguments: &InitArguments) -> Result<String> {
    Ok(String::new())
}
