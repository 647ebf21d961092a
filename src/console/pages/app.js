// The frame around the pages: maps addresses to pages, shows the navigation, and decides who may see them.
import {arrive, pushAddress, stay, wayBack} from './address.js';
import {callOnce, Refusal} from './api.js';
import {dialogsMayClose} from './dialog.js';
import {h, icon, show} from './dom.js';
import {tickTimes} from './format.js';
import {keysPage} from './keys.js';
import {loadOrigin} from './origin.js';
import {emptyState, loading} from './parts.js';
import {currentSession, loadSession, watchSession} from './session.js';
import {brand, openReSignIn, openStepUp, signInPage} from './signin.js';
import {TEXTS} from './texts.js';

const BASE = '/console/';
const TITLES = TEXTS.pages;
const RELOAD_PAUSE_MS = 10000;
const TICK_MS = 20000;

// load() imports the script that exports the page's function. The start page is part of the first load, because it is
// needed in an emergency; the others load when they are opened. Pages with an icon are in the menu.
const PAGES = {
    '': {title: TITLES.keys, icon: 'key', load: async () => ({keysPage}), page: 'keysPage'},
    'keys/key_': {title: TITLES.key, load: () => import('./key.js'), page: 'keyPage', within: ''},
    'devices': {title: TITLES.devices, icon: 'device', load: () => import('./devices.js'), page: 'devicesPage'},
    'activity': {title: TITLES.activity, icon: 'activity', load: () => import('./activity.js'), page: 'activityPage'},
    'usage': {title: TITLES.usage, icon: 'usage', load: () => import('./usage.js'), page: 'usagePage'},
    'session': {title: TITLES.session, icon: 'person', load: () => import('./account.js'), page: 'sessionPage'},
    'activate': {title: TITLES.activate, load: () => import('./devices.js'), page: 'activatePage', within: 'devices'},
};

const root = document.getElementById('root');
let frame = null; // {links, main}, set while somebody is signed in
let page = null;
let pageName = '';
let offline = null;

// Pages of single things: a name that ends with "_" stands for all ids that begin so.
const nameOfAddress = () => location.pathname.slice(BASE.length).replace(/^([a-z]+\/[a-z]+_)[^/]+$/, '$1');

function missingPage() {
    return {
        element: h(
            'div',
            null,
            h('h1', {class: 'unseen', tabindex: '-1'}, TEXTS.missing.title),
            emptyState(
                'info',
                TEXTS.missing.title,
                TEXTS.missing.text,
                h('a', {class: 'button primary', href: BASE}, TEXTS.missing.action),
            ),
        ),
    };
}

function closeDialogs() {
    for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close();
}

function closePage() {
    page?.stop?.();
    page = null;
    closeDialogs();
}

function menuLink(name, {title, icon: iconName}) {
    return h('a', {'href': BASE + name, 'data-page': name}, icon(iconName), h('span', null, title));
}

function buildFrame() {
    const {user} = currentSession();
    const links = Object.entries(PAGES)
        .filter(([, {icon: iconName}]) => iconName)
        .map(([name, described]) => menuLink(name, described));
    const main = h('main', {id: 'content'});

    frame = {links, main};
    show(
        root,
        h('a', {class: 'skip', href: '#content'}, TEXTS.skip),
        h(
            'div',
            {class: 'frame'},
            h(
                'header',
                {class: 'side'},
                h(
                    'div',
                    {class: 'side-head'},
                    brand(),
                    h('span', {class: 'account', title: user.account_name}, user.account_name),
                ),
                h('nav', {'aria-label': TEXTS.navigation}, links),
                h('p', {class: 'side-foot', title: user.email}, user.email),
            ),
            main,
        ),
    );
}

// The browser does not fetch a script again that it could not get, and a newer version of the console has its scripts
// elsewhere. So once the server answers, the whole document is loaded again, though not in a loop.
async function loadAnew() {
    const {type} = performance.getEntriesByType('navigation')[0];

    await callOnce('GET', '/.well-known/oauth-authorization-server');
    if (type === 'reload' && performance.now() < RELOAD_PAUSE_MS) throw new Refusal('offline');
    location.reload();
    return new Promise(() => {});
}

function openPage(moveFocus) {
    const name = nameOfAddress();
    const described = Object.hasOwn(PAGES, name) ? PAGES[name] : null;
    const loader = loading(frame.main, {
        placeholder: () => [...frame.main.childNodes],
        load: async () => (described ? (await described.load().catch(loadAnew))[described.page] : missingPage),
        draw: (create) => {
            page = create();
            show(frame.main, page.element);
            scrollTo(0, 0);
            if (moveFocus) (page.focused?.() ?? frame.main.querySelector('h1'))?.focus({preventScroll: true});
        },
    });

    closePage();
    arrive();
    pageName = name;
    document.title = TEXTS.title(described?.title ?? TEXTS.missing.title);
    for (const link of frame.links) {
        if (link.dataset.page === (described?.within ?? name)) link.setAttribute('aria-current', 'page');
        else link.removeAttribute('aria-current');
    }
    page = {stop: loader.stop};
    loader.run();
}

function showConsole(moveFocus) {
    buildFrame();
    openPage(moveFocus);
}

// Leaves nothing of the previous page in the document.
function showSignIn(message) {
    closePage();
    frame = null;
    dispatchEvent(new Event('forget')); // for scripts that keep something for the user
    document.title = TEXTS.title(TEXTS.signIn.title);
    show(
        root,
        signInPage(message, () => showConsole(true)),
    );
    root.querySelector('[autofocus]')?.focus();
}

async function go(next) {
    await wayBack();
    if (!frame) return;
    pushAddress(next);
    openPage(true);
}

// Back and forward close whatever lies over the page, if it may be closed. Within a page they change its state.
function wentBack() {
    if (!frame) return;
    if (wayBack()) {
        arrive();
    } else if (!dialogsMayClose()) {
        stay();
    } else if (page?.moved && nameOfAddress() === pageName) {
        closeDialogs();
        arrive();
        page.moved();
    } else {
        openPage(true);
    }
}

function clicked(event) {
    const link = event.target.closest?.('a[href]');
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;

    if (
        !link ||
        !isPlain ||
        !frame ||
        link.hasAttribute('download') ||
        link.origin !== location.origin ||
        !link.pathname.startsWith(BASE) ||
        link.getAttribute('href').startsWith('#')
    )
        return;
    event.preventDefault();
    go(link.pathname + link.search);
}

function typed(event) {
    const isTyping = event.target.closest?.('input, textarea, select, [contenteditable]');

    if (
        event.key === '/' &&
        !isTyping &&
        !event.ctrlKey &&
        !event.metaKey &&
        !event.altKey &&
        page?.shortcut &&
        !document.querySelector('dialog[open]')
    ) {
        event.preventDefault();
        page.shortcut();
    }
}

function connectionChanged() {
    offline?.remove();
    offline = navigator.onLine
        ? null
        : h('div', {class: 'offline-bar', role: 'status'}, icon('cloud'), TEXTS.problem.offlineBanner);
    if (offline) document.body.prepend(offline);
}

// Times in words go on, and what others have changed is shown, when somebody comes back to this window.
function keepFresh() {
    setInterval(tickTimes, TICK_MS);
    document.addEventListener('visibilitychange', () => {
        if (document.visibilityState !== 'visible' || !frame || document.querySelector('dialog[open]')) return;
        tickTimes();
        page?.refresh?.();
    });
}

// A page restored from the back-forward cache may belong to somebody who has signed out since.
function leave() {
    document.documentElement.classList.add('left');
}

function comeBack(event) {
    if (event.persisted) location.reload();
    else document.documentElement.classList.remove('left');
}

async function start() {
    const space = h('main', {class: 'lone'});

    watchSession({
        ended: () => showSignIn(TEXTS.signIn.signedOut),
        signInAgain: openReSignIn,
        stepUp: openStepUp,
    });
    addEventListener('click', clicked);
    addEventListener('keydown', typed);
    addEventListener('popstate', wentBack);
    addEventListener('online', connectionChanged);
    addEventListener('offline', connectionChanged);
    addEventListener('pagehide', leave);
    addEventListener('pageshow', comeBack);
    keepFresh();
    connectionChanged();
    show(root, space);
    await loading(space, {
        placeholder: () => h('p', {class: 'unseen', role: 'status'}, TEXTS.loading),
        load: async () => (await Promise.all([loadSession(), loadOrigin()]))[0],
        draw: (isSignedIn) => {
            if (isSignedIn) showConsole(false);
            else showSignIn('');
        },
    }).run();
}

start();
