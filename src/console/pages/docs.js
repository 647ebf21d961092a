// The documentation, begun by docs.html: the quick start is there already, the rest is made of the description of the API.
import {Description} from './docs_model.js';
import {operationSections, quickExamples} from './docs_operation.js';
import {markdown, sentence} from './docs_parts.js';
import {searchBox} from './docs_search.js';
import {TEXTS} from './docs_texts.js';
import {h, show} from './dom.js';

const main = document.getElementById('content');
const isErrors = location.pathname === '/docs/errors';
const link = (hash, content, properties) => h('a', {href: `/docs#${hash}`, ...properties}, content);
const STARTS = [...document.querySelectorAll('section.start')].map(({id, textContent}) => ({
    href: `/docs#${id}`,
    title: document.getElementById(id).querySelector('h2').textContent,
    detail: TEXTS.start,
    words: `${TEXTS.start} ${textContent}`,
}));
const slug = (title) => title.toLowerCase().replaceAll(/[^a-z]+/g, '-');

// The chapters of the description: those with tables of errors have the page for errors.
function chaptersOf({info}) {
    const [lead, ...chapters] = info.description.split('\n\n## ');
    const parts = chapters.map((chapter) => {
        const [title, ...text] = chapter.split('\n\n');

        return {title, id: slug(title), text: text.join('\n\n'), isErrors: chapter.includes('| what to do |')};
    });

    return {lead, parts};
}

function overview({lead, parts}, codes) {
    const section = ({title, id, text}) => h('section', {class: 'chapter', id}, h('h3', null, title), markdown(text, codes));

    return [
        h('h2', {id: 'overview'}, TEXTS.overview),
        markdown(lead, codes),
        parts.filter((part) => !part.isErrors).map(section),
    ];
}

function errorEntry(row, codes) {
    return h(
        'section',
        {class: 'error-entry', id: row.code},
        h(
            'h3',
            null,
            h('code', null, row.code),
            h('span', {class: 'status'}, row.status),
            h('a', {class: 'anchor', href: `#${row.code}`, 'aria-label': TEXTS.copyLink(row.code)}, '#'),
        ),
        h(
            'dl',
            null,
            h('dt', null, TEXTS.when),
            h('dd', null, sentence(row.when, codes)),
            h('dt', null, TEXTS.remedy),
            h('dd', null, sentence(row['what to do'], codes)),
        ),
    );
}

function errorsPage({parts}, description, codes) {
    const chapter = ({title, id, text}) => {
        const lead = text.split('\n\n').filter((paragraph) => !paragraph.startsWith('|'));
        const rows = description.codes.filter(({code}) => text.includes(`| \`${code}\` |`));

        return [h('h2', {id}, title), markdown(lead.join('\n\n'), codes), rows.map((row) => errorEntry(row, codes))];
    };

    return [
        h('h1', null, TEXTS.errors),
        h('p', {class: 'lead'}, TEXTS.errorsLead),
        parts.filter((part) => part.isErrors).map(chapter),
    ];
}

function navigation({parts}, {tags, operations}) {
    const chapters = parts.filter((part) => !part.isErrors);
    const group = (title, links) =>
        h('section', null, h('h2', null, title), h('ul', null, links.map((each) => h('li', null, each))));

    return [
        group(TEXTS.overview, [
            ...chapters.map(({title, id}) => link(id, title)),
            h('a', {href: '/docs/errors', 'aria-current': isErrors ? 'page' : null}, TEXTS.errors),
        ]),
        ...tags.map(({name}) =>
            group(
                name,
                operations
                    .filter(({tag}) => tag === name)
                    .map(({id, method, summary}) =>
                        link(id, [h('span', null, summary), h('span', {class: `verb ${method.toLowerCase()}`}, method)]),
                    ),
            ),
        ),
    ];
}

// Marks in the navigation what is being read, and keeps the mark in sight.
function follow(nav) {
    const links = new Map([...nav.querySelectorAll('a[href^="/docs#"]')].map((each) => [each.hash.slice(1), each]));
    const observer = new IntersectionObserver(
        (entries) => {
            const entry = entries.findLast(({isIntersecting}) => isIntersecting);
            const current = entry && links.get(entry.target.id);

            if (!current) return;
            nav.querySelector('[aria-current="location"]')?.removeAttribute('aria-current');
            current.setAttribute('aria-current', 'location');
            const {top, bottom} = current.getBoundingClientRect();
            const frame = nav.getBoundingClientRect();
            if (top < frame.top || bottom > frame.bottom) nav.scrollTop += top - frame.top - frame.height / 3;
        },
        {rootMargin: '-10% 0px -75% 0px'},
    );

    for (const section of main.querySelectorAll('section[id]')) if (links.has(section.id)) observer.observe(section);
}

function findables({operations, codes}) {
    return [
        ...STARTS,
        ...operations.map(({id, method, path, summary, tag}) => ({
            href: `/docs#${id}`,
            title: summary,
            detail: `${method} ${path}`,
            words: `${summary} ${method} ${path} ${tag} ${id}`,
        })),
        ...codes.map(({code, status, when}) => ({
            href: `/docs/errors#${code}`,
            title: code,
            detail: `${status}`,
            words: `${code} ${status} ${when}`,
        })),
    ];
}

function openContents() {
    const button = document.getElementById('contents');
    const side = document.getElementById('side');
    const toggle = (isOpen) => {
        side.classList.toggle('open', isOpen);
        button.setAttribute('aria-expanded', isOpen);
    };

    button.hidden = false;
    button.addEventListener('click', () => toggle(!side.classList.contains('open')));
    side.addEventListener('click', ({target}) => target.closest('a') && toggle(false));
}

function build(document_) {
    const description = new Description(document_);
    const codes = new Map(description.codes.map(({code}) => [code, `/docs/errors#${code}`]));
    const context = {description, codes, origin: location.origin};
    const chapters = chaptersOf(description);
    const nav = document.getElementById('nav');
    const reference = document.getElementById('reference');

    nav.append(...navigation(chapters, description));
    if (isErrors) {
        main.append(...errorsPage(chapters, description, codes).flat(Infinity));
    } else {
        quickExamples(context, main);
        show(reference, overview(chapters, codes), operationSections(context));
    }
    show(document.getElementById('search'), searchBox(findables(description)));
    if (isErrors) reference.remove();
    reference.setAttribute('aria-busy', 'false');
    follow(nav);
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

document.title = TEXTS.title(isErrors ? TEXTS.pages.errors : TEXTS.pages.docs);
openContents();
if (isErrors) show(main, document.getElementById('reference'));
try {
    const response = await fetch('/openapi.json', {credentials: 'omit'});

    if (!response.ok) throw new Error(`${response.status}`);
    build(await response.json());
} catch (error) {
    show(document.getElementById('reference'), h('p', {class: 'notice', role: 'alert'}, TEXTS.unreachable));
    document.getElementById('reference').setAttribute('aria-busy', 'false');
    if (!(error instanceof TypeError) && !/^\d+$/.test(error.message)) throw error;
}
