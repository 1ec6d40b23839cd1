//! Records metrics of the daemon's own host, so that a new installation has data at once.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use collect::host::{HostCollector, STEP_SECONDS};
use rrd::time::Timestamp;
use tokio::sync::watch;

use super::context::CollectorContext;
use super::recorder::Recorder;
use crate::service::stopped;

/// Samples at the next whole second, so that a new installation shows something at once, and then at every multiple of the step,
/// until `stop` becomes true.
///
/// # Errors
/// None: failures are logged and sampling continues.
pub async fn run(
    context: Arc<CollectorContext>,
    directory: String,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut collector = HostCollector::new(&directory);
    let mut recorder = Recorder::new(Arc::clone(&context), "host");
    let step = STEP_SECONDS as i64;
    let mut due = context.now() + 1;
    loop {
        let wait = Duration::from_secs((due - context.now()).clamp(0, step) as u64);
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return Ok(()),
            () = tokio::time::sleep(wait) => {}
        }
        match tokio::task::block_in_place(|| collector.collect(Timestamp::whole(due))) {
            Ok(readings) => {
                recorder.record(collector.inventory(), &readings).await;
            }
            Err(error) => tracing::warn!(%error, "cannot read this machine's metrics"),
        }
        due = (context.now().div_euclid(step) + 1) * step;
    }
}
