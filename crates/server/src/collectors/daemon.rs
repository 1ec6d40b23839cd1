//! Records the daemon's own numbers, so that each number of the status page has a history.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use collect::host::STEP_SECONDS;
use collect::reading::Readings;
use collect::statistics::OwnRrd;
use tokio::sync::watch;

use super::context::CollectorContext;
use super::recorder::Recorder;
use crate::service::stopped;
use crate::status::StatusWatch;

/// What the recorder is called in the log, and its RRD in the process's own directory.
const NAME: &str = "daemon";

/// Its RRD's name in the directory `roundel`, without `.rrd`: `daemon`, or `NODE/daemon` in a cluster.
pub fn rrd(context: &CollectorContext) -> String {
    format!("{}{NAME}", context.own_directory)
}

/// Feeds the RRD once per step until `stop` becomes true.
///
/// # Errors
/// None: failures are logged and recording continues.
pub async fn run(
    context: Arc<CollectorContext>,
    status: Arc<StatusWatch>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut rrd = OwnRrd::new(&rrd(&context));
    let mut recorder = Recorder::new(Arc::clone(&context), NAME);
    loop {
        let wait = Duration::from_secs(STEP_SECONDS - context.now().rem_euclid(STEP_SECONDS as i64) as u64);
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return Ok(()),
            () = tokio::time::sleep(wait) => {}
        }
        if let Some(numbers) = tokio::task::block_in_place(|| status.numbers()) {
            let mut readings = Readings::default();
            rrd.read(context.now(), &numbers, &mut readings);
            recorder.record(rrd.inventory(), &readings).await;
        }
    }
}
