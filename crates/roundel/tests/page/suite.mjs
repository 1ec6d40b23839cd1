// Runs the tests of one module beside this file, which the command line names, in one process with one Chromium.

import { runChecks } from './browser.mjs';

await import(`./${process.argv[2]}.mjs`);
runChecks();
