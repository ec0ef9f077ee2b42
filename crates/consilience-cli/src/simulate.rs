//! Simulated data as a file.

use crate::arguments::{SimulateArguments, Simulation};
use crate::progress::Bar;
use crate::shell::word;
use consilience::draft;
use consilience::simulate::{self, Format, Simulated, rjmcmc, toy};
use consilience::{Error, Place, Result};
use std::path::Path;

/// Writes the data, and returns what is to be printed.
pub fn write(arguments: &SimulateArguments) -> Result<String> {
    let SimulateArguments { what, rows, columns, out, seed, force, quiet } = arguments;
    if columns.is_some() && *what != Simulation::Alleles {
        return Err(Error::input(
            "--columns is for alleles; the number of columns of the others is fixed: leave --columns out",
        ));
    }
    let usual = match what {
        Simulation::Toy => Some(toy::ROWS),
        Simulation::Rjmcmc => Some(rjmcmc::ROWS),
        _ => None,
    };
    let Some(rows) = rows.or(usual) else {
        return Err(Error::input("how many rows? Say it by --rows N"));
    };
    let (what, command) = match what {
        Simulation::Higgs => (Simulated::Higgs, "compare examples/higgs.toml"),
        Simulation::Alleles => {
            (Simulated::Alleles(columns.unwrap_or(100)), "compare examples/alleles.toml")
        }
        Simulation::Toy => (Simulated::Toy, "compare examples/toy.toml"),
        Simulation::Rjmcmc => (Simulated::Rjmcmc(rows), "select examples/rjmcmc.toml"),
    };
    let format = Format::of(out)?;
    refuse(out, *force)?;
    let bar = Bar::of_rows(!quiet, rows);
    draft::write_with(out, |file| {
        simulate::write(file, format, what, rows, *seed, &mut |done| bar.set(done))
    })?;
    bar.clear();
    Ok(format!(
        "{} is written: {rows} rows, {} columns, seed {seed}. Then\n  consilience {command} --data {}\n",
        out.display(),
        what.names().len(),
        word(out)
    ))
}

/// What cannot be written to should be known before the work.
fn refuse(out: &Path, force: bool) -> Result<()> {
    let wrong = |message: &str| Err(Error::input_at(Place::file(out), message));
    if out.is_dir() {
        return wrong("this is a folder; name the file to write");
    }
    let folder = out.parent().filter(|p| !p.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return wrong("there is no such folder; make it first, or name another");
    }
    if out.symlink_metadata().is_ok() && !force {
        return wrong("this file is there already; --force replaces it, --out names another");
    }
    Ok(())
}
