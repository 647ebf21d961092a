// The frame around the pages: maps addresses to pages, shows the navigation, and decides who may see them.
import {accountMenu} from './account_menu.js';
import {arrive, pushAddress, stay, takeLinkCode, wayBack} from './address.js';
import {callOnce, Refusal} from './api.js';
import {dialogsMayClose} from './dialog.js';
import {foreign, h, icon, show} from './dom.js';
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
const NEWS_READ = 'news-read';

// load() imports the script that exports the page's function. The start page is part of the first load, because it is
// needed in an emergency; the others load when they are opened. Pages with an icon are in the menu; those outside are for
// people who are not signed in.
const PAGES = {
    '': {title: TITLES.keys, icon: 'key', load: async () => ({keysPage}), page: 'keysPage'},
    'keys/key_': {title: TITLES.key, load: () => import('./key.js'), page: 'keyPage', within: ''},
    'devices': {title: TITLES.devices, icon: 'device', load: () => import('./devices.js'), page: 'devicesPage'},
    'activity': {title: TITLES.activity, icon: 'activity', load: () => import('./activity.js'), page: 'activityPage'},
    'usage': {title: TITLES.usage, icon: 'usage', load: () => import('./usage.js'), page: 'usagePage'},
    'people': {title: TITLES.people, icon: 'people', load: () => import('./people.js'), page: 'peoplePage'},
    'account': {title: TITLES.account, load: () => import('./account.js'), page: 'accountPage'},
    'system': {title: TITLES.system, load: () => import('./system.js'), page: 'systemPage'},
    'activate': {title: TITLES.activate, load: () => import('./devices.js'), page: 'activatePage', within: 'devices'},
    'join': {title: TITLES.join, load: () => import('./join.js'), page: 'joinPage', isOutside: true},
    'recover': {title: TITLES.recover, load: () => import('./recover.js'), page: 'recoverPage', isOutside: true},
};

const root = document.getElementById('root');
let frame = null; // {links, news, main}, set while somebody is signed in
let page = null;
let pagePath = '';
let offline = null;

// Pages of single things: a name that ends with "_" stands for all ids that begin so.
const nameOfAddress = () => location.pathname.slice(BASE.length).replace(/^([a-z]+\/[a-z]+_)[^/]+$/, '$1');
const describedPage = (name) => (Object.hasOwn(PAGES, name) ? PAGES[name] : null);

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
    const main = h('div');
    const news = h('div');

    frame = {links, news, main};
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
                    h('span', {class: 'account', title: foreign(user.account_name)}, foreign(user.account_name)),
                ),
                h('nav', {'aria-label': TEXTS.navigation}, links),
                accountMenu(),
            ),
            h('main', {id: 'content'}, news, main),
        ),
    );
}

// The browser does not fetch a script again that it could not get, and a newer version of the console has its scripts
// elsewhere. So once the server answers, the whole document is loaded again, though not in a loop.
async function reloadDocument() {
    const {type} = performance.getEntriesByType('navigation')[0];

    await callOnce('GET', '/.well-known/oauth-authorization-server');
    if (type === 'reload' && performance.now() < RELOAD_PAUSE_MS) throw new Refusal('offline');
    location.reload();
    return new Promise(() => {});
}

const loadPage = async (described) => (await described.load().catch(reloadDocument))[described.page];

const isNews = (notices) =>
    Boolean(
        notices?.failed_sign_ins || notices?.attacked_at || notices?.recovery_used_at || notices?.new_browsers?.length,
    );

// Once read, the news of a session is not shown again in this tab. My account has it always.
async function showNews(name) {
    const {notices, expiresAt} = currentSession();
    const {news, main} = frame;
    const read = () => {
        sessionStorage.setItem(NEWS_READ, expiresAt);
        show(news);
        main.querySelector('h1')?.focus();
    };

    if (name === 'account' || !isNews(notices) || sessionStorage.getItem(NEWS_READ) === expiresAt) {
        show(news);
    } else if (!news.firstChild) {
        const {noticesBar} = await import('./notices.js').catch(reloadDocument);

        show(news, noticesBar(notices, read));
    }
}

function openPage(moveFocus) {
    const name = nameOfAddress();
    const described = describedPage(name);
    const loader = loading(frame.main, {
        placeholder: () => [...frame.main.childNodes],
        load: async () => (described ? await loadPage(described) : missingPage),
        draw: (create) => {
            page = create();
            show(frame.main, page.element);
            scrollTo(0, 0);
            if (moveFocus) (page.focused?.() ?? frame.main.querySelector('h1'))?.focus({preventScroll: true});
        },
    });

    if (described?.isOutside) {
        location.reload();
        return;
    }
    closePage();
    arrive();
    pagePath = location.pathname;
    document.title = TEXTS.title(described?.title ?? TEXTS.missing.title);
    for (const link of frame.links) {
        if (link.dataset.page === (described?.within ?? name)) link.setAttribute('aria-current', 'page');
        else link.removeAttribute('aria-current');
    }
    showNews(name).catch(() => {}); // it comes with the next page
    page = {stop: loader.stop};
    loader.run();
}

function showConsole(moveFocus) {
    if (currentSession().mustChangePassword) {
        showRequiredPassword();
        return;
    }
    buildFrame();
    openPage(moveFocus);
}

// Pages without the frame

function showOutside(title, load, ...given) {
    const space = h('main', {class: 'lone'});
    const loader = loading(space, {
        placeholder: () => h('p', {class: 'unseen', role: 'status'}, TEXTS.loading),
        load,
        draw: (create) => {
            show(root, create(...given).element);
            (root.querySelector('[autofocus]') ?? root.querySelector('h1'))?.focus();
        },
    });

    frame = null;
    document.title = TEXTS.title(title);
    show(root, space);
    loader.run();
}

// The server refuses everything else until the password was changed.
function showRequiredPassword() {
    const load = async () => (await import('./change_password.js').catch(reloadDocument)).requiredPasswordPage;

    closePage();
    showOutside(TEXTS.pages.password, load, async () => {
        await loadSession();
        showConsole(true);
    });
}

// Leaves nothing of the previous page in the document.
function showSignIn(message, email) {
    closePage();
    frame = null;
    dispatchEvent(new Event('forget')); // for scripts that keep something for the user
    document.title = TEXTS.title(TEXTS.signIn.title);
    show(
        root,
        signInPage(message, () => showConsole(true), email),
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
    } else if (page?.moved && location.pathname === pagePath) {
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

// A recovered user goes on to the console, not to the page where the way began.
function recovered(message, email) {
    history.replaceState(null, '', BASE);
    showSignIn(message, email);
}

async function start() {
    const space = h('main', {class: 'lone'});
    const described = describedPage(nameOfAddress());

    watchSession({
        ended: () => showSignIn(TEXTS.signIn.signedOut),
        mustChangePassword: showRequiredPassword,
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
    if (described?.isOutside) {
        await loadOrigin();
        showOutside(described.title, () => loadPage(described), {done: recovered});
        return;
    }
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

takeLinkCode();
start();
