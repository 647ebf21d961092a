// A file of tests in one browser, or 77 (for CTest: skipped) where it is not there. node run.js chromium|firefox FILE
import {existsSync} from 'node:fs';

import {CHROMIUM, FIREFOX} from './browser.js';

const [name, file] = process.argv.slice(2);
const path = {chromium: CHROMIUM, firefox: FIREFOX}[name];

if (!existsSync(path)) {
    console.log(`skipped: there is no ${path}; install it, or name another in CHATELAINE_${name.toUpperCase()}`);
    process.exit(77);
}
process.env.CHATELAINE_TEST_BROWSER = name;
await import(`./${file}`); // here, because node --test would start two more processes of Node.js
