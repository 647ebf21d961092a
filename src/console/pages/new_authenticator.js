// Replacing one's authenticator: prove the old one, scan the new one, confirm it with a code.
import {ACCOUNT} from './account_texts.js';
import {closeFoot} from './action.js';
import {call} from './api.js';
import {authenticatorView, newCodeField, newCodeRefusals} from './authenticator.js';
import {openDialog} from './dialog.js';
import {announce, h} from './dom.js';
import {
    checkFields,
    codeField,
    codeOf,
    codeProblem,
    notice,
    passwordField,
    userNameField,
    workingForm,
} from './form.js';
import {currentSession} from './session.js';
import {explainProof} from './signin.js';
import {TEXTS} from './texts.js';

const PATH = '/v1/console/totp';

function proofForm(dialog, proven) {
    const password = passwordField({autofocus: true});
    const code = codeField();

    return workingForm({
        fields: [
            h('p', null, ACCOUNT.factorLead),
            userNameField(currentSession().user.email),
            password.element,
            code.element,
        ],
        submitText: ACCOUNT.factorStart,
        workingText: ACCOUNT.factorStarting,
        cancel: () => dialog().close(),
        submit: async () => {
            if (
                !checkFields([
                    [password, !password.input.value && TEXTS.signIn.passwordMissing],
                    [code, codeProblem(code.input)],
                ])
            )
                return;
            proven(await call('POST', PATH, {password: password.input.value, totp: codeOf(code.input)}));
        },
        explain: (refusal) => explainProof(refusal, code, ACCOUNT.wrong),
    }).element;
}

function confirmForm(dialog, answer, {confirmed, late}) {
    const code = newCodeField();

    return workingForm({
        fields: [authenticatorView(answer.totp_uri, answer.totp_qr), code.element],
        submitText: ACCOUNT.factorConfirm,
        workingText: ACCOUNT.factorConfirming,
        cancel: () => dialog().close(),
        submit: async () => {
            if (!checkFields([[code, codeProblem(code.input)]])) return;
            await call('POST', `${PATH}/confirm`, {totp: codeOf(code.input)});
            confirmed();
        },
        explain: newCodeRefusals(code, late),
    }).element;
}

export function openNewAuthenticator() {
    let isScanning = false;
    const end = (title, kind, text) => {
        isScanning = false;
        dialog.replace(title, notice(kind, text), closeFoot(dialog));
        announce(title);
    };
    const gone = () => end(ACCOUNT.factorGoneTitle, 'warn', ACCOUNT.factorGone);
    const proven = (answer) => {
        isScanning = true;
        dialog.replace(
            ACCOUNT.factorScanTitle,
            confirmForm(() => dialog, answer, {
                confirmed: () => end(ACCOUNT.factorDoneTitle, 'good', ACCOUNT.factorDone),
                late: gone,
            }),
        );
    };
    const dialog = openDialog({
        title: ACCOUNT.factorTitle,
        name: 'enrol',
        content: proofForm(() => dialog, proven),
    });

    dialog.element.addEventListener('veil', () => {
        if (isScanning) gone();
    });
}
