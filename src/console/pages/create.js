// Creating a key: the form, which keeps what was typed until the key is created, and the secret, shown once. A decoy is
// created likewise; it is revoked from the start, so it has no scopes to choose, and must not be tried out.
import {call} from './api.js';
import {CREATE, DECOY} from './create_texts.js';
import {openDialog} from './dialog.js';
import {announce, h, icon, newId, show} from './dom.js';
import {saveFile} from './file.js';
import {checkFields, field, foot, notice, problemSpace, workingForm} from './form.js';
import {copyButton, explain, modeBadge} from './parts.js';
import {SCOPE_GROUPS, TEXTS} from './texts.js';

const NAME_MAX = 200;
const FILE_STEM_MAX = 40;
const ALL_SCOPES = SCOPE_GROUPS.flatMap((group) => group.scopes.map(([name]) => name));

const emptyDraft = (isDecoy) => ({isDecoy, name: '', mode: isDecoy ? 'live' : 'test', scopes: new Set(), hasAll: false});
let draft = emptyDraft(false);

function forgetDraft() {
    draft = emptyDraft(false);
}

addEventListener('forget', forgetDraft);

const wordsOf = () => (draft.isDecoy ? DECOY : CREATE);

// The form

function modeCard(mode, text, changed) {
    const input = h('input', {type: 'radio', name: 'mode', value: mode});

    input.checked = draft.mode === mode;
    input.addEventListener('change', () => {
        draft.mode = mode;
        changed();
    });
    return h(
        'label',
        {class: `mode-card ${mode}`},
        input,
        h('span', {class: 'mode-card-text'}, modeBadge(mode), h('span', null, text)),
    );
}

function modeField(changed) {
    return h(
        'fieldset',
        null,
        h('legend', null, CREATE.mode),
        h(
            'div',
            {class: 'mode-cards'},
            modeCard('test', wordsOf().testText, changed),
            modeCard('live', wordsOf().liveText, changed),
        ),
        h('p', {class: 'hint'}, CREATE.permanent),
    );
}

function scopeBox(name, words, changed) {
    const input = h('input', {type: 'checkbox', name: 'scopes', value: name});

    input.checked = draft.scopes.has(name) || draft.hasAll;
    input.disabled = draft.hasAll;
    input.addEventListener('change', () => {
        if (input.checked) draft.scopes.add(name);
        else draft.scopes.delete(name);
        changed();
    });
    return h(
        'label',
        {class: 'scope'},
        input,
        h('span', null, h('code', null, name), h('span', {class: 'scope-words'}, words)),
    );
}

function scopeGroup(group, changed) {
    const titleId = newId('group');

    return h(
        'div',
        {'class': 'scope-group', 'role': 'group', 'aria-labelledby': titleId},
        h(
            'div',
            {class: 'scope-group-name'},
            h('h3', {id: titleId}, group.name),
            group.isPowerful ? h('p', {class: 'hint'}, CREATE.powerful) : null,
        ),
        h(
            'div',
            null,
            group.scopes.map(([name, words]) => scopeBox(name, words, changed)),
        ),
    );
}

function allScopesBox(changed) {
    const input = h('input', {type: 'checkbox', name: 'all-scopes'});

    input.checked = draft.hasAll;
    input.addEventListener('change', () => {
        draft.hasAll = input.checked;
        changed();
    });
    return h(
        'div',
        {class: 'all-scopes'},
        h(
            'div',
            null,
            h('strong', null, CREATE.allTitle),
            h('p', null, CREATE.allText),
            h('label', {class: 'check'}, input, CREATE.all),
        ),
    );
}

// Like field(), for a group of inputs.
function scopesField() {
    const errorId = newId('scopes-error');
    const error = h('p', {class: 'field-error', id: errorId});
    const groups = h('div', {class: 'scope-groups'});
    const tally = h('span', {'class': 'tally', 'aria-live': 'polite'});
    const drawTally = () => {
        error.textContent = '';
        tally.textContent = CREATE.scopesCount(draft.hasAll ? ALL_SCOPES.length : draft.scopes.size);
    };
    const drawGroups = () => {
        show(
            groups,
            SCOPE_GROUPS.map((group) => scopeGroup(group, drawTally)),
        );
        drawTally();
    };
    const element = h(
        'fieldset',
        {'aria-describedby': errorId},
        h('legend', null, CREATE.scopes, tally),
        h('p', {class: 'hint'}, CREATE.scopesHint),
        error,
        groups,
        allScopesBox(drawGroups),
    );

    drawGroups();
    return {
        element,
        setError: (text) => {
            error.textContent = text;
        },
        get input() {
            return groups.querySelector('input');
        },
    };
}

// Counts code points, as the server does.
function nameProblem(name) {
    const length = [...name].length;

    if (length === 0) return CREATE.nameMissing;
    return length > NAME_MAX && CREATE.nameLong;
}

function explainCreate(refusal, name) {
    if (refusal.kind === 'offline' || refusal.kind === 'away')
        return [
            notice('warn', h('p', null, refusal.kind === 'away' ? CREATE.unavailable : CREATE.unanswered)),
        ];
    if (refusal.param === 'name') {
        name.setError(refusal.message);
        name.input.focus();
        return [];
    }
    return [explain(refusal)];
}

function createForm(dialog, made) {
    const name = field({
        label: CREATE.name,
        hint: wordsOf().nameHint,
        input: h('input', {type: 'text', name: 'key-name', autocomplete: 'off', autofocus: true, value: draft.name}),
    });
    const live = h('div', {'class': 'live-notice', 'aria-live': 'polite'});
    const modeChanged = () => {
        const isLive = draft.mode === 'live' && !draft.isDecoy;

        dialog().element.classList.toggle('is-live', isLive);
        show(live, isLive ? notice('warn', CREATE.liveNotice) : null);
        if (!draft.isDecoy) form.setSubmit(isLive ? CREATE.submitLive : CREATE.submitTest, isLive ? 'live' : 'primary');
    };
    const scopes = draft.isDecoy ? null : scopesField();
    const form = workingForm({
        fields: [
            draft.isDecoy ? h('p', null, DECOY.text) : null,
            name.element,
            modeField(modeChanged),
            live,
            scopes && scopes.element,
        ],
        submitText: wordsOf().submitTest,
        workingText: CREATE.working,
        cancel: () => dialog().close(),
        submit: async () => {
            const chosen = draft.hasAll ? ALL_SCOPES : ALL_SCOPES.filter((scope) => draft.scopes.has(scope));

            if (
                !checkFields([
                    [name, nameProblem(draft.name.trim())],
                    ...(scopes ? [[scopes, chosen.length === 0 && CREATE.scopesMissing]] : []),
                ])
            )
                return;
            const more = draft.isDecoy ? {decoy: true} : {scopes: chosen};

            made(await call('POST', '/v1/console/api_keys', {name: draft.name.trim(), mode: draft.mode, ...more}));
        },
        explain: (refusal) => explainCreate(refusal, name),
    });

    name.input.addEventListener('input', () => {
        draft.name = name.input.value;
    });
    return {element: form.element, modeChanged};
}

// The secret

function fileStem(name) {
    return (
        name
            .toLowerCase()
            .replace(/[^a-z0-9]+/g, '-')
            .replace(/^-+|-+$/g, '')
            .slice(0, FILE_STEM_MAX) || 'api-key'
    );
}

function tryView(file, curl) {
    return h(
        'div',
        null,
        h('div', {class: 'try-head'}, h('h3', null, CREATE.tryIt), copyButton(curl, TEXTS.copy, 'plain small')),
        h('p', {class: 'hint'}, CREATE.tryText(file)),
        h('pre', {tabindex: '0'}, h('code', null, curl)),
    );
}

function secretView(key, state, finish) {
    const file = `${fileStem(key.name)}.env`;
    const curl = `set -a; . ./${file}; set +a\ncurl -sS ${location.origin}/v1/whoami -H "Authorization: Bearer $CHATELAINE_API_KEY"`;
    const env = new Blob([`CHATELAINE_API_KEY=${key.secret}\n`], {type: 'text/plain'});
    const stored = h('input', {type: 'checkbox', name: 'stored'});
    const done = h('button', {type: 'button', class: 'primary', disabled: true, onclick: finish}, CREATE.finish);

    stored.addEventListener('change', () => {
        state.isStored = stored.checked;
        done.disabled = !stored.checked;
    });
    return [
        notice('warn', key.revoked_at ? DECOY.doneText : CREATE.doneText),
        h('div', {class: 'key-line'}, h('strong', {class: 'wrap'}, key.name), modeBadge(key.mode)),
        h(
            'div',
            {class: 'secret'},
            h('span', {class: 'field-name'}, CREATE.secret),
            h('code', {class: 'secret-text', tabindex: '0'}, key.secret),
            h(
                'div',
                {class: 'secret-actions'},
                copyButton(key.secret, CREATE.copySecret, 'primary'),
                h(
                    'button',
                    {type: 'button', class: 'secondary', onclick: () => saveFile(file, env)},
                    icon('download'),
                    CREATE.download,
                ),
            ),
        ),
        key.revoked_at ? null : tryView(file, curl),
        foot(state.problem, h('label', {class: 'check'}, stored, CREATE.stored), done),
    ];
}

// Closing the tab now would lose the secret.
function warnUnload(event) {
    event.preventDefault();
}

export function openCreate(created, isDecoy) {
    if (draft.isDecoy !== isDecoy) draft = emptyDraft(isDecoy);
    const words = wordsOf();
    const state = {secretShown: false, isStored: false, problem: problemSpace()};
    const form = createForm(
        () => dialog,
        (key) => {
            forgetDraft();
            state.secretShown = true;
            addEventListener('beforeunload', warnUnload);
            dialog.element.classList.remove('is-live');
            dialog.replace(
                CREATE.doneTitle,
                secretView(key, state, () => dialog.close()),
            );
            announce(words.created(key.name));
            created();
        },
    );
    const dialog = openDialog({
        title: words.title,
        shape: 'sheet',
        name: 'create',
        content: form.element,
        mayClose: () => {
            if (!state.secretShown || state.isStored) return true;
            show(state.problem, notice('warn', CREATE.notStored));
            state.problem.focus();
            return false;
        },
        closed: () => removeEventListener('beforeunload', warnUnload),
    });
    dialog.element.addEventListener('veil', () => {
        if (!state.secretShown) return;
        state.isStored = true; // it can no longer be shown
        removeEventListener('beforeunload', warnUnload);
        dialog.replace(
            CREATE.goneTitle,
            notice('warn', h('p', null, CREATE.gone)),
            foot(null, h('button', {type: 'button', class: 'primary', onclick: () => dialog.close()}, TEXTS.close)),
        );
    });

    form.modeChanged();
}
