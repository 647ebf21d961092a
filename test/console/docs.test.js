// The documentation: everything that the description of the API has, in a form that people read; and what it tells them
// to type works.
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {describe, test} from 'node:test';
import {pathToFileURL} from 'node:url';

import {PATIENCE_MS} from '../support/deployment.js';
import {openContext, settled} from './browser.js';
import {browse, browser, deployment, judge, someKeys} from './scene.js';

const SOURCE = process.env.CHATELAINE_SOURCE;
const CONTRACT = JSON.parse(readFileSync(join(SOURCE, 'src/api/openapi.json'), 'utf8'));
const OPERATIONS = Object.values(CONTRACT.paths).flatMap((item) => Object.values(item));
const LANGUAGES = ['curl', 'JavaScript', 'Python', 'Go'];
const TITLES = {'/docs': 'Documentation', '/docs/errors': 'Error codes'};

const load = (name) => import(pathToFileURL(join(SOURCE, 'src/console/pages', name)));

async function open(page, path) {
    await page.goto(path);
    await page.getByRole('heading', {level: 1, name: TITLES[path.split('#')[0]]}).waitFor();
    await page.locator('#search input').waitFor();
    await settled(page);
}

const choose = (page, language) => page.getByRole('button', {name: language, exact: true}).first().click();

// The text of the example of each operation, by its id.
const examples = (page) =>
    page.locator('.operation').evaluateAll((sections) =>
        Object.fromEntries(sections.map((section) => [section.id, section.querySelector('.example pre').textContent])),
    );

describe('each operation', () => {
    browse('has a section with its parameters, its members and four examples with this origin', async (page) => {
        await open(page, '/docs');
        const ids = await page.locator('.operation').evaluateAll((all) => all.map(({id}) => id));
        assert.deepEqual(ids.toSorted(), OPERATIONS.map(({operationId}) => operationId).toSorted());
        for (const language of LANGUAGES) {
            await choose(page, language);
            const all = Object.entries(await examples(page));

            assert.equal(all.length, OPERATIONS.length);
            for (const [id, text] of all) {
                assert.ok(text.includes(deployment.origin), `${language}: ${id}`);
                assert.ok(!/undefined|\[object/.test(text), `${language}: ${id}: ${text}`);
            }
        }
        for (const {operationId, parameters = []} of OPERATIONS) {
            const names = await page.locator(`#${operationId} .row-name`).allTextContents();

            for (const {$ref} of parameters) {
                const {name} = CONTRACT.components.parameters[$ref.split('/').at(-1)];

                assert.ok(names.includes(name), `${operationId}: ${name}`);
            }
        }
        const body = page.locator('#create_api_key .row').filter({hasText: 'A name to recognise it by'}).first();
        await body.getByText('required').waitFor();
        await page.locator('#list_api_keys').getByText('1 to 100').waitFor();
    });

    browse('tells its errors, with cause and remedy', async (page) => {
        await open(page, '/docs');
        await page.locator('.error-list').evaluateAll((all) => all.forEach((each) => (each.open = true)));
        await page.waitForFunction(() => [...document.querySelectorAll('.errors')].every((list) => list.children.length > 0));
        const codes = await page.locator('#create_api_key .errors a[href^="/docs/errors#"]').allTextContents();

        for (const code of ['parameter_unknown', 'api_key_revoked', 'scope_not_grantable', 'key_limit_reached', 'store_unavailable'])
            assert.ok(codes.includes(code), code);
        const remedies = await page.locator('.errors .remedy').allTextContents();
        assert.ok(remedies.length > 1000 && remedies.every((text) => /What to do \S/.test(text)));
    });

    browse('copies the example that is shown', async (page) => {
        await open(page, '/docs');
        await choose(page, 'Python');
        const section = page.locator('#create_api_key');

        await section.getByRole('button', {name: 'Copy'}).click();
        await page.locator('#announcer').getByText('Copied').waitFor();
        assert.equal(
            await page.evaluate(() => navigator.clipboard.readText()),
            await section.locator('.example pre').first().textContent(),
        );
    });
});

// In a folder of its own, one file for each operation.
async function written(language, extension) {
    const {Description} = await load('docs_model.js');
    const {LANGUAGES: writers, requestOf} = await load('docs_examples.js');
    const [, , write] = writers.find(([, name]) => name === language);
    const description = new Description(CONTRACT);
    const folder = mkdtempSync(join(tmpdir(), 'chatelaine-docs-'));
    const files = description.operations.map((operation) => {
        const file = join(folder, `${operation.id}.${extension}`);

        writeFileSync(file, `${write(requestOf(description, operation, deployment.origin))}\n`);
        return file;
    });

    return {folder, files};
}

// node --check takes one file.
const PARSE = "for (const file of process.argv.slice(1)) new vm.SourceTextModule(fs.readFileSync(file, 'utf8'), {identifier: file})";
const parse = (files) => execFileSync('node', ['--experimental-vm-modules', '--no-warnings', '-e', PARSE, ...files]);

describe('examples', () => {
    const has = (program) => spawnSync(program, ['--version']).error === undefined;
    const CHECKS = [
        ['curl', 'sh', 'bash', (files) => files.forEach((file) => execFileSync('bash', ['-n', file]))],
        ['JavaScript', 'mjs', 'node', parse],
        ['Python', 'py', 'python3', (files) => execFileSync('python3', ['-m', 'py_compile', ...files])],
        ['Go', 'go', 'gofmt', (files) => assert.equal(execFileSync('gofmt', ['-l', ...files], {encoding: 'utf8'}), '')],
    ];

    for (const [language, extension, program, check] of CHECKS)
        test(`all in ${language} can be compiled`, {skip: !has(program) && `there is no ${program}`}, async () => {
            const {folder, files} = await written(language, extension);

            try {
                assert.equal(files.length, OPERATIONS.length);
                check(files);
            } finally {
                rmSync(folder, {recursive: true});
            }
        });

    test('what is shown is what this node takes', {timeout: 4 * PATIENCE_MS}, async () => {
        const {made} = await someKeys(['For the examples', 'live', ['keys:manage', 'audit:read', 'usage:read', 'team:manage', 'patients:read']]);
        const env = {...process.env, CHATELAINE_API_KEY: made[0].secret};
        const answers = {
            curl: ['sh', ['bash'], /^\{/],
            JavaScript: ['mjs', ['node'], /^200 \{/],
            Python: ['py', ['python3'], /^200 \{/],
        };
        const READS = ['show_own_key', 'list_api_keys', 'read_audit_trail', 'show_usage_of_period', 'list_team', 'show_openapi'];

        for (const [language, [extension, [program], good]] of Object.entries(answers)) {
            const {folder} = await written(language, extension);
            const run = (id) => execFileSync(program, [join(folder, `${id}.${extension}`)], {env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']});

            try {
                for (const id of READS) {
                    const said = run(id);

                    assert.match(said, good, `${language}: ${id}`);
                    assert.ok(!said.includes('"error"') || id === 'show_openapi', `${language}: ${id}: ${said}`);
                }
                assert.match(run('create_api_key'), /"secret":"svc_sk_test_/, language);
                assert.match(run('authorize_device'), /"user_code"/, language);
            } finally {
                rmSync(folder, {recursive: true});
            }
        }
    });
});

test('the question of the quick start gets the verdicts that it shows', {timeout: 4 * PATIENCE_MS}, async () => {
    const text = await (await fetch(`${deployment.url}/docs`)).text();
    const [, shown] = text.match(/<code>(curl 'http:\/\/127[^<]*)<\/code>/);
    const [good, bad] = text
        .match(/aria-label="Verdicts"><code>([^<]*)</)[1]
        .split('\n\n')
        .map((verdict) => JSON.parse(verdict));
    const {made} = await someKeys(['May read', 'test', ['patients:read']], ['May not', 'test', ['usage:read']]);
    const [yes, no] = made.map(({secret}) => {
        const command = shown
            .replace('http://127.0.0.1:8081', deployment.nodes[0].internalUrl)
            .replace('svc_sk_test_…', secret);

        return JSON.parse(execFileSync('bash', ['-c', command], {encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']}));
    });

    assert.deepEqual(yes, {...good, id: made[0].id, account_id: deployment.account});
    assert.deepEqual(no, {...bad, message: no.message});
});

describe('error codes', () => {
    browse('each has an address, a cause and a remedy', async (page) => {
        const {Description} = await load('docs_model.js');
        const description = new Description(CONTRACT);
        const answered = description.operations.flatMap(({responses}) => responses.flatMap((each) => description.codesOf(each)));
        const codes = [...new Set([...answered, ...CONTRACT.components.schemas.ErrorCode.enum ?? []])];

        await open(page, '/docs/errors');
        const entries = await page.locator('.error-entry').evaluateAll((all) =>
            Object.fromEntries(all.map((entry) => [entry.id, [...entry.querySelectorAll('dd')].map(({textContent}) => textContent.length)])),
        );
        assert.ok(codes.length > 60);
        for (const code of [...codes, ...Object.keys(CONTRACT.components.examples)])
            assert.ok(entries[code]?.length === 2 && entries[code].every((length) => length > 4), code);
    });

    browse('the address of one leads to it', async (page) => {
        await open(page, '/docs/errors#insufficient_scope');
        await page.waitForFunction(() => {
            const {top} = document.getElementById('insufficient_scope').getBoundingClientRect();

            return top >= 0 && top < innerHeight / 2;
        });
    });
});

describe('search', () => {
    browse('finds operations, codes and quick starts by the keyboard alone', async (page) => {
        await open(page, '/docs/errors');
        await page.keyboard.press('/');
        await page.keyboard.type('revoke many');
        const matches = page.getByRole('option');
        await matches.filter({hasText: 'POST /v1/api_keys/revoke'}).waitFor();
        await page.keyboard.press('ArrowDown');
        assert.equal(await matches.nth(1).getAttribute('aria-selected'), 'true');
        await judge(page, 'search');
        await page.keyboard.press('ArrowUp');
        await page.keyboard.press('Enter');
        await page.waitForURL('**/docs#revoke_api_keys');
        await page.locator('#revoke_api_keys').getByRole('heading', {name: 'Revoke many API keys'}).waitFor();
        await settled(page);
        await page.keyboard.press('Control+k');
        await page.keyboard.type('scope_not');
        await matches.filter({hasText: 'scope_not_grantable'}).waitFor();
        await page.keyboard.press('Enter');
        await page.waitForURL('**/docs/errors#scope_not_grantable');
        await page.getByRole('heading', {name: 'scope_not_grantable'}).waitFor();
        await page.keyboard.press('/');
        await page.keyboard.type('no such thing at all');
        await page.locator('.found-nothing').waitFor();
        await page.keyboard.press('Escape');
        assert.equal(await page.locator('#search input').inputValue(), '');
        assert.equal(await matches.count(), 0);
        await page.keyboard.press('Control+k');
        await page.keyboard.type('/check/verify');
        await matches.filter({hasText: 'A backend without a gateway'}).waitFor();
    });
});

// Texts and controls that lie side by side must not lie on each other, and nothing is wider than the window.
async function judgeLayout(page, state) {
    const faults = await page.evaluate(() => {
        const wide = document.documentElement.scrollWidth > innerWidth ? [`wider than ${innerWidth} px`] : [];
        const groups = ['.row-head', '.example-head', '.side-head', '.endpoint', '.status-line', '.operation', '.start', '.error-entry h3', 'nav a'];
        const overlap = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
        const boxesOf = (group) =>
            [...group.children].map((child) => child.getBoundingClientRect()).filter(({width, height}) => width && height);
        const crossed = [...document.querySelectorAll(groups.join())].filter((group) => {
            const boxes = boxesOf(group);

            return boxes.some((a, i) => boxes.slice(i + 1).some((b) => overlap(a, b)));
        });
        const outside = [...document.querySelectorAll('main :is(h1, h2, h3, h4, p, li, button, code)')].filter((element) => {
            const {left, right, width} = element.getBoundingClientRect();

            return width && !element.closest('pre, .table-space, .unseen') && (left < 0 || right > innerWidth + 1);
        });

        const broken = [...document.querySelectorAll('.verb, .status')].filter(
            (word) => word.getClientRects().length > 1 || word.getBoundingClientRect().height > 2.1 * parseFloat(getComputedStyle(word).fontSize),
        );

        return [...wide, ...[...crossed, ...outside, ...broken].map(({outerHTML}) => outerHTML.slice(0, 160))];
    });

    assert.deepEqual(faults.slice(0, 5), [], state);
}

for (const scheme of ['light', 'dark'])
    browse(
        `fits every window, also with large text, ${scheme}`,
        async (page) => {
            for (const path of ['/docs', '/docs/errors']) {
                await open(page, path);
                for (const size of ['100%', '200%'])
                    for (const width of [320, 390, 768, 1280]) {
                        await page.setViewportSize({width, height: 800});
                        await page.evaluate((each) => (document.documentElement.style.fontSize = each), size);
                        await judgeLayout(page, `${path}, ${width} px, ${size}`);
                    }
                await page.evaluate(() => (document.documentElement.style.fontSize = ''));
                await page.setViewportSize({width: 1280, height: 800});
                await judge(page, `${path}, ${scheme}`);
                await page.setViewportSize({width: 320, height: 720});
                await page.getByRole('button', {name: 'Contents'}).click();
                await page.getByRole('navigation').getByRole('link', {name: 'List API keys'}).first().waitFor();
                if (path === '/docs/errors') await judge(page, `${scheme}, narrow, with its contents`);
            }
        },
        {scheme},
    );

browse(
    'forced colours',
    async (page) => {
        await open(page, '/docs/errors');
        await judge(page, 'forced colours');
    },
    {forcedColors: 'active'},
);

test('without scripts the quick start is there, and says where the rest is', {timeout: PATIENCE_MS}, async () => {
    const {context} = await openContext(browser, deployment, {javaScriptEnabled: false});
    const page = await context.newPage();

    await page.goto('/docs');
    await page.getByRole('heading', {name: 'A backend without a gateway'}).waitFor();
    await page.getByText('POST /check/verify').first().waitFor();
    await page.locator('noscript .notice').waitFor(); // getByText() looks into no <noscript>
    await context.close();
});

browse('the quick start shows without scripts what it shows with them', async (page) => {
    const plain = (await (await fetch(`${deployment.url}/docs`)).text()).match(/<code>(curl 'http:\/\/127[^<]*)<\/code>/)[1];

    await open(page, '/docs');
    assert.equal(await page.locator('[data-request] pre').textContent(), plain);
});

test('it is light, asks for nothing but its files and the description, and sends nothing of a session', {timeout: 2 * PATIENCE_MS}, async (t) => {
    const {context, complaints} = await openContext(browser, deployment);
    const page = await context.newPage();
    const client = await context.newCDPSession(page);
    const sizes = new Map();
    const paths = new Map();

    await client.send('Network.enable');
    client.on('Network.requestWillBeSent', ({requestId, request}) => paths.set(requestId, new URL(request.url).pathname));
    client.on('Network.loadingFinished', ({requestId, encodedDataLength}) => sizes.set(requestId, encodedDataLength));
    await open(page, '/docs');
    await page.waitForLoadState('networkidle');
    const asked = [...paths].map(([id, path]) => [path, sizes.get(id)]);
    const bytes = asked.filter(([path]) => path !== '/openapi.json').reduce((sum, [, size]) => sum + size, 0);
    t.diagnostic(`its own files: ${bytes} bytes; the description: ${asked.find(([path]) => path === '/openapi.json')[1]}`);
    assert.ok(bytes < 60000, `${bytes} bytes`);
    assert.deepEqual(
        asked.map(([path]) => path).filter((path) => !/^\/(docs|openapi\.json|console\/[0-9a-f]{20}\/[a-z_]+\.(js|css|svg))$/.test(path)),
        [],
    );
    assert.deepEqual(complaints, []);
    await context.close();
});
