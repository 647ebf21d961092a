// Devices, and approving one by the code that it shows (RFC 8628).
import {choice, replaceAddress, withState, words} from './address.js';
import {call, withQuery} from './api.js';
import {ACTIVATE, DEVICES} from './devices_texts.js';
import {foreign, h, icon, newButton, show} from './dom.js';
import {notice, textField, workingForm} from './form.js';
import {clockTime, timeElement} from './format.js';
import {
    emptyState,
    explain,
    facts,
    listTable,
    loading,
    pageHead,
    pagerMore,
    revokeCell,
    segments,
    skeletonRows,
} from './parts.js';
import {mayAs} from './permissions.js';
import {openRevoke} from './revoke.js';
import {TEXTS} from './texts.js';

const PATH = '/v1/console/device_keys';
const ENROLMENTS = '/v1/console/device_enrolments';
const PAGE = 50;
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const CODE_LETTERS = 8;

function revokeDevice(device, revoked) {
    openRevoke(
        device,
        {
            path: PATH,
            title: DEVICES.revokeTitle,
            text: DEVICES.revokeText,
            submitText: DEVICES.revokeSubmit,
            doneTitle: DEVICES.revokedTitle,
            doneText: DEVICES.revokedText,
        },
        revoked,
    );
}

function deviceRow(device) {
    const row = h('tr', {'data-id': device.id});
    const activity = withQuery('/console/activity', {target: device.id});
    const revoked = (record) => {
        Object.assign(device, record, {name: device.name});
        draw();
    };

    function draw() {
        row.classList.toggle('is-revoked', Boolean(device.revoked_at));
        show(
            row,
            h(
                'th',
                {scope: 'row'},
                h('a', {class: 'row-name', href: activity, title: DEVICES.activity}, foreign(device.name)),
                h('span', {class: 'mono faint last4'}, `…${device.last4}`),
            ),
            h('td', {'data-label': DEVICES.columns.created}, timeElement(device.created_at)),
            h('td', {'data-label': DEVICES.columns.lastUsed}, timeElement(device.last_used_at)),
            h('td', {class: 'action-cell'}, revokeCell(device, () => revokeDevice(device, revoked))),
        );
    }

    draw();
    return row;
}

const addLink = () =>
    mayAs('developer') && h('a', {class: 'button primary', href: '/console/activate'}, icon('plus'), DEVICES.add);

function emptyDevices(status) {
    return status === 'revoked'
        ? emptyState('ban', TEXTS.keys.emptyFilteredTitle, TEXTS.keys.emptyRevoked)
        : emptyState('device', DEVICES.emptyTitle, DEVICES.empty, addLink());
}

export function devicesPage() {
    const content = h('div', {class: 'list-space'});
    const status = choice('status', ['revoked', 'all'], 'active');
    const state = {status: status === 'all' ? '' : status, devices: []};
    const load = (after) => call('GET', withQuery(PATH, {limit: PAGE, status: state.status, starting_after: after}));
    const more = pagerMore(TEXTS.older, async () => {
        const {devices} = state;
        const page = await load(devices.at(-1).id);

        if (devices === state.devices) draw(page); // otherwise another status was chosen meanwhile
    });

    function draw(page) {
        state.devices.push(...page.data.map((device) => ({...device, name: device.name || DEVICES.unnamed})));
        show(
            content,
            state.devices.length
                ? listTable('devices', DEVICES.table, DEVICES.columns, state.devices.map(deviceRow))
                : emptyDevices(state.status),
            page.has_more ? more : null,
        );
    }
    const loader = loading(content, {
        placeholder: () => skeletonRows(4),
        load: () => {
            state.devices = [];
            return load();
        },
        draw,
    });
    const element = h(
        'div',
        null,
        pageHead(DEVICES.title, DEVICES.lead, addLink()),
        h(
            'div',
            {class: 'filters'},
            segments({
                label: TEXTS.keys.status,
                value: state.status,
                options: [
                    ['active', TEXTS.keys.active],
                    ['revoked', TEXTS.keys.revoked],
                    ['', TEXTS.keys.any],
                ],
                change: (value) => {
                    state.status = value;
                    replaceAddress(withState({status: value === 'active' ? '' : value || 'all'}));
                    loader.run();
                },
            }),
        ),
        content,
    );

    loader.run();
    return {element, stop: loader.stop};
}

// Approving a device

// Formats "bcdfghjk" as "BCDF-GHJK". Characters that no code contains are dropped.
function codeForm(text) {
    const letters = [...text.toUpperCase()]
        .filter((letter) => LETTERS.includes(letter))
        .slice(0, CODE_LETTERS)
        .join('');

    return letters.length > 4 ? `${letters.slice(0, 4)}-${letters.slice(4)}` : letters;
}

function codeStep(prefilled, found) {
    const code = textField({
        label: ACTIVATE.code,
        hint: ACTIVATE.codeHint,
        problem: (value) => codeForm(value).length !== CODE_LETTERS + 1 && ACTIVATE.codeMissing,
        name: 'user-code',
        class: 'code wide',
        autocapitalize: 'characters',
        spellcheck: 'false',
        maxlength: 12,
        value: codeForm(prefilled),
        autofocus: true,
    });
    const form = workingForm({
        fields: [code],
        submitText: ACTIVATE.look,
        workingText: ACTIVATE.looking,
        submit: async () => {
            const value = codeForm(code.value());

            found(value, await call('GET', `${ENROLMENTS}/${value}`));
        },
        explain: (refusal) => {
            if (refusal.status !== 404) return [explain(refusal)];
            code.setError(ACTIVATE.unknown);
            code.input.select();
            return [];
        },
    });

    code.input.addEventListener('input', () => {
        // Format only while the cursor is at the end; elsewhere it would jump.
        if (code.input.selectionStart === code.input.value.length) code.input.value = codeForm(code.input.value);
    });
    return form.element;
}

// decided() gets the decision, made here or by somebody who was faster.
function confirmStep(code, enrolment, {decided, back}) {
    const decide = (verb, workingText, buttonClass) =>
        workingForm({
            fields: [],
            submitText: ACTIVATE[verb],
            workingText,
            buttonClass,
            submit: async () => decided((await call('POST', `${ENROLMENTS}/${code}/${verb}`)).status),
            explain: (refusal) => [refusal.status === 404 ? notice('warn', ACTIVATE.unknown) : explain(refusal)],
        }).element;

    return [
        h('h2', {tabindex: '-1'}, ACTIVATE.confirm),
        h('p', {class: 'big-code'}, code),
        h('p', null, ACTIVATE.compare),
        facts([
            [ACTIVATE.device, h('strong', {class: 'wrap'}, foreign(enrolment.device_name || DEVICES.unnamed))],
            [ACTIVATE.asks, ACTIVATE.asksText],
            enrolment.ip ? [ACTIVATE.from, h('code', null, enrolment.ip)] : null,
            enrolment.created_at ? [ACTIVATE.at, timeElement(enrolment.created_at)] : null,
            enrolment.expires_at ? [ACTIVATE.expires, clockTime(enrolment.expires_at)] : null,
        ]),
        mayAs('developer')
            ? notice('warn', ACTIVATE.warning)
            : notice('info', mayAs('responder') ? ACTIVATE.mayDeny : ACTIVATE.mayLook),
        h(
            'div',
            {class: 'decide'},
            newButton('plain', back, TEXTS.cancel),
            mayAs('responder') && decide('deny', ACTIVATE.denying, 'danger-quiet'),
            mayAs('developer') && decide('approve', ACTIVATE.approving),
        ),
    ];
}

function endStep(kind, title, text, again) {
    return [
        h('h2', {tabindex: '-1'}, title),
        notice(kind, text),
        h(
            'div',
            {class: 'actions'},
            newButton('secondary', again, ACTIVATE.another),
            h('a', {class: 'button primary', href: '/console/devices'}, ACTIVATE.toDevices),
        ),
    ];
}

export function activatePage() {
    const card = h('div', {class: 'card narrow'});
    const step = (...content) => {
        show(card, ...content);
        (card.querySelector('[autofocus]') ?? card.querySelector('h2'))?.focus();
    };
    const ends = {
        approved: () =>
            step(...endStep('good', ACTIVATE.approvedTitle, ACTIVATE.approved, () => start(''))),
        denied: () => step(...endStep('info', ACTIVATE.deniedTitle, ACTIVATE.denied, () => start(''))),
    };
    const decided = (status) => ends[status]();
    const found = (code, enrolment) => {
        if (enrolment.status === 'pending') step(...confirmStep(code, enrolment, {decided, back: () => start(code)}));
        else decided(enrolment.status);
    };
    const start = (code) => step(codeStep(code, found));

    start(words('user_code'));
    return {
        element: h('div', null, pageHead(ACTIVATE.title, ACTIVATE.lead), card),
        focused: () => card.querySelector('input'),
    };
}
