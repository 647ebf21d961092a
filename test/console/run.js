// Tests in one browser, or 77 (for CTest: skipped) where it is not there. node run.js chromium|firefox FILE…
import {spawnSync} from 'node:child_process';
import {existsSync} from 'node:fs';

import {CHROMIUM, FIREFOX} from './browser.js';

const [name, ...tests] = process.argv.slice(2);
const path = {chromium: CHROMIUM, firefox: FIREFOX}[name];

if (!existsSync(path)) {
    console.log(`skipped: there is no ${path}; install it, or name another in CHATELAINE_${name.toUpperCase()}`);
    process.exit(77);
}
const env = {...process.env, CHATELAINE_TEST_BROWSER: name};

process.exit(spawnSync(process.execPath, ['--test', ...tests], {stdio: 'inherit', env}).status ?? 1);
