//! Driftline's pollers and HTTP.
