// Creating a key: the form, which keeps what was typed until the key is created. A decoy is created likewise; it is
// revoked from the start, so it has no scopes to choose, and must not be tried out.
import {call} from './api.js';
import {CREATE, DECOY} from './create_texts.js';
import {h, newId, show} from './dom.js';
import {notice, workingForm} from './form.js';
import {explainNewKey, nameField, openSecretSheet} from './new_key.js';
import {modeBadge} from './parts.js';
import {mayGrant} from './permissions.js';
import {SCOPE_GROUPS} from './texts.js';

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
    const choose = () => {
        draft.mode = mode;
        changed();
    };

    return h(
        'label',
        {class: `mode-card ${mode}`},
        h('input', {type: 'radio', name: 'mode', value: mode, checked: draft.mode === mode, onchange: choose}),
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
    const choose = ({target}) => {
        if (target.checked) draft.scopes.add(name);
        else draft.scopes.delete(name);
        changed();
    };
    const state = {checked: draft.scopes.has(name) || draft.hasAll, disabled: draft.hasAll};

    return h(
        'label',
        {class: 'scope'},
        h('input', {type: 'checkbox', name: 'scopes', value: name, ...state, onchange: choose}),
        h('span', null, h('code', null, name), h('span', {class: 'hint'}, words)),
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
            group.scopes.filter(([name]) => mayGrant(name)).map(([name, words]) => scopeBox(name, words, changed)),
        ),
    );
}

function allScopesBox(changed) {
    const choose = ({target}) => {
        draft.hasAll = target.checked;
        changed();
    };
    const input = h('input', {type: 'checkbox', name: 'all-scopes', checked: draft.hasAll, onchange: choose});

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

// As a field.
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
        ALL_SCOPES.every(mayGrant) ? allScopesBox(drawGroups) : h('p', {class: 'hint'}, CREATE.ownersOnly),
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
        problem: (chosen) => chosen.length === 0 && CREATE.scopesMissing,
        value: () => (draft.hasAll ? ALL_SCOPES : ALL_SCOPES.filter((scope) => draft.scopes.has(scope))),
    };
}

function createForm(dialog, made) {
    const name = nameField({label: CREATE.name, hint: wordsOf().nameHint, autofocus: true, value: draft.name});
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
            name,
            modeField(modeChanged),
            live,
            scopes,
        ],
        submitText: wordsOf().submitTest,
        workingText: CREATE.working,
        cancel: () => dialog().close(),
        submit: async () => {
            const more = draft.isDecoy ? {decoy: true} : {scopes: scopes.value()};

            made(await call('POST', '/v1/console/api_keys', {name: name.value(), mode: draft.mode, ...more}));
        },
        explain: (refusal) => explainNewKey(refusal, name, CREATE),
    });

    name.input.addEventListener('input', () => {
        draft.name = name.input.value;
    });
    return {element: form.element, modeChanged};
}

export function openCreate(created, isDecoy) {
    if (draft.isDecoy !== isDecoy) draft = emptyDraft(isDecoy);
    const words = wordsOf();
    const form = createForm(
        () => sheet,
        (key) => {
            forgetDraft();
            sheet.show(key, {
                text: isDecoy ? DECOY.doneText : undefined,
                canTry: !isDecoy,
                said: words.created(key.name),
            });
            created();
        },
    );
    const sheet = openSecretSheet({title: words.title, content: form.element});

    form.modeChanged();
}
