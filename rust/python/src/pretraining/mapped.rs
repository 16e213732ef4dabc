//! Files that arrays are mapped from, which are compared with their size before they are read.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The module that knows how NumPy keeps a map.
const MODULE: &str = "wordpiece_bert._internal.mapped_files";

/// The maps that arrays are in: each map, the least size of its file, and the file's name.
pub struct MappedFiles(Vec<(Py<PyAny>, u64, Py<PyAny>)>);

impl MappedFiles {
    /// Finds the maps of arrays; those in memory have none.
    pub fn of(py: Python<'_>, arrays: &[Bound<'_, PyAny>]) -> PyResult<MappedFiles> {
        let map_of = py.import(MODULE)?.getattr("map_of")?;
        let mut files = Vec::new();
        for array in arrays {
            if let Some(found) = map_of.call1((array,))?.extract()? {
                files.push(found);
            }
        }
        Ok(MappedFiles(files))
    }

    /// Checks that no file is shorter than when it was mapped: to read what is missing would end the process.
    ///
    /// # Errors
    ///
    /// InputError, which names the file.
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        for (map, needed, name) in &self.0 {
            let size = map.bind(py).call_method0("size").and_then(|size| size.extract::<u64>());
            if size.is_ok_and(|size| size < *needed) {
                let arguments = PyTuple::new(py, [map.bind(py), &needed.into_pyobject(py)?.into_any(), name.bind(py)])?;
                py.import(MODULE)?.call_method1("require_size", arguments)?;
            }
        }
        Ok(())
    }
}
