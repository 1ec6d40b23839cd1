// The types of the page's modules, by `tsc`.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

test('the types of all modules agree', () => {
  const project = fileURLToPath(new URL('../../../server/assets/tsconfig.json', import.meta.url));
  const compiler = join(process.env.ROUNDEL_PAGE_MODULES ?? '.', 'node_modules/typescript/bin/tsc');
  const { status, stdout, stderr, error } = spawnSync(process.execPath, [compiler, '--project', project], { encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}${stderr}${error ?? ''}`);
});
