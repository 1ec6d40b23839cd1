// All browser tests, in one process with one Chromium.

import './types.mjs';
import './graphs.mjs';
import './pages.mjs';
import './finding.mjs';
import { runChecks } from './browser.mjs';

runChecks();
