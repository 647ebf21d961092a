// The tests in one browser, or 77 (for CTest: skipped) where it is not there. node run.js chromium|firefox
import {spawnSync} from 'node:child_process';
import {existsSync} from 'node:fs';

import {CHROMIUM, FIREFOX} from './browser.js';

const BROWSERS = {
    chromium: {
        path: CHROMIUM,
        tests: [
            'console.test.js',
            'keys.test.js',
            'activity.test.js',
            'usage.test.js',
            'life.test.js',
            'links.test.js',
            'my_account.test.js',
            'people.test.js',
            'people_access.test.js',
        ],
    },
    firefox: {path: FIREFOX, tests: ['firefox.test.js', 'life.test.js']},
};
const name = process.argv[2];
const {path, tests} = BROWSERS[name];

if (!existsSync(path)) {
    console.log(`skipped: there is no ${path}; install it, or name another in CHATELAINE_${name.toUpperCase()}`);
    process.exit(77);
}
const env = {...process.env, CHATELAINE_TEST_BROWSER: name};

process.exit(spawnSync(process.execPath, ['--test', ...tests], {stdio: 'inherit', env}).status ?? 1);
