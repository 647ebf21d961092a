// The tests, or 77 (for CTest: skipped) where there is no browser.
import {spawnSync} from 'node:child_process';
import {existsSync} from 'node:fs';

import {CHROMIUM} from './browser.js';

if (!existsSync(CHROMIUM)) {
    console.log(`skipped: there is no ${CHROMIUM}; apt-get install chromium, or name another in CHATELAINE_CHROMIUM`);
    process.exit(77);
}
process.exit(spawnSync(process.execPath, ['--test', 'console.test.js'], {stdio: 'inherit'}).status ?? 1);
