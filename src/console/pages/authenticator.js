// Setting up an authenticator app: its QR code, its secret as text, and the first code.
import {AUTHENTICATOR} from './account_texts.js';
import {copySecretButton} from './copy.js';
import {h, svg} from './dom.js';
import {codeField, userNameField, workingForm} from './form.js';
import {explain} from './parts.js';

const QUIET = 4; // light modules around the code (ISO/IEC 18004)

// rows: strings of 0 and 1, as the server sends them. Dark on white in every colour scheme, because readers need that.
function qrCode(rows) {
    const size = rows.length + 2 * QUIET;
    const d = rows
        .flatMap((row, y) =>
            [...row.matchAll(/1+/g)].map(
                (run) => `M${run.index + QUIET} ${y + QUIET}h${run[0].length}v1h-${run[0].length}z`,
            ),
        )
        .join('');

    return svg(
        'svg',
        {
            'class': 'qr',
            'viewBox': `0 0 ${size} ${size}`,
            'role': 'img',
            'aria-label': AUTHENTICATOR.qr,
            'shape-rendering': 'crispEdges',
        },
        svg('rect', {width: size, height: size, fill: '#fff'}),
        svg('path', {d, fill: '#000'}),
    );
}

const grouped = (secret) => secret.match(/.{1,4}/g).join(' ');

// uri and rows: totp_uri and totp_qr of an answer.
export function authenticatorView(uri, rows) {
    const secret = new URL(uri).searchParams.get('secret');

    return h(
        'div',
        {class: 'authenticator'},
        rows?.length ? qrCode(rows) : null,
        h(
            'div',
            {class: 'authenticator-words'},
            h('p', null, AUTHENTICATOR.scan),
            h('p', {class: 'hint'}, AUTHENTICATOR.byHand),
            h('code', {class: 'totp-secret', tabindex: '0'}, grouped(secret)),
            h(
                'p',
                {class: 'authenticator-actions'},
                copySecretButton(secret, AUTHENTICATOR.copy, 'plain small'),
                h('a', {class: 'button plain small', href: uri}, AUTHENTICATOR.openHere),
            ),
        ),
    );
}

export const newCodeField = () => codeField({label: AUTHENTICATOR.code, hint: AUTHENTICATOR.codeHint});

// How a form with that field explains a refusal. Wrong codes: the second time, the phone's clock is the likely cause.
// late(): the server has given up waiting for the code.
export function newCodeRefusals(code, late) {
    let wrongCount = 0;

    return (refusal) => {
        if (refusal.status === 404 || refusal.param === 'ticket') {
            late();
            return [];
        }
        if (refusal.code !== 'invalid_login' && refusal.param !== 'totp') return [explain(refusal)];
        wrongCount += 1;
        code.input.value = '';
        code.setError(wrongCount > 1 ? AUTHENTICATOR.wrongAgain : AUTHENTICATOR.wrong);
        code.input.focus();
        return [];
    };
}

// Shows the new authenticator and asks for its first code; send() gets that. answer: of the server. email: whose it is,
// for password managers, where the page does not say it.
export function confirmForm(answer, {email, submitText, workingText, cancel, send, late}) {
    const code = newCodeField();

    return workingForm({
        fields: [email && userNameField(email), authenticatorView(answer.totp_uri, answer.totp_qr), code],
        submitText,
        workingText,
        cancel,
        submit: () => send(code.value()),
        explain: newCodeRefusals(code, late),
    }).element;
}
