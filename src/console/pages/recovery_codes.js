// Ten recovery codes, shown once.
import {ACCOUNT} from './account_texts.js';
import {closeFoot} from './action.js';
import {call} from './api.js';
import {openDialog} from './dialog.js';
import {announce, h, icon, newButton, plain, show} from './dom.js';
import {saveFile} from './file.js';
import {foot, notice, problemSpace, workingForm} from './form.js';
import {copySecretButton, explain} from './parts.js';
import {currentSession} from './session.js';

function asText(codes) {
    const head = ACCOUNT.codesHead(currentSession().user.email, location.origin);

    return [plain(head), '', ...codes, '', ACCOUNT.codesFoot, ''].join('\n');
}

const download = (codes) => saveFile(ACCOUNT.codesFile, new Blob([asText(codes)], {type: 'text/plain'}));

// Closing the tab now would lose the codes.
function warnUnload(event) {
    event.preventDefault();
}

function codesView(dialog, codes, state) {
    const stored = h('input', {type: 'checkbox', name: 'stored'});
    const done = newButton('primary', () => dialog.close(), ACCOUNT.done, {disabled: true});

    stored.addEventListener('change', () => {
        state.isStored = stored.checked;
        done.disabled = !stored.checked;
    });
    return [
        notice('warn', ACCOUNT.codesText),
        h('p', {class: 'print-only'}, ACCOUNT.codesHead(currentSession().user.email, location.origin)),
        h(
            'ul',
            {'class': 'recovery-codes', 'aria-label': ACCOUNT.codes, 'tabindex': '0'},
            codes.map((code) => h('li', null, h('code', null, code))),
        ),
        h('p', {class: 'print-only'}, ACCOUNT.codesFoot),
        h(
            'div',
            {class: 'secret-actions'},
            copySecretButton(codes.join('\n'), ACCOUNT.copyCodes, 'primary'),
            newButton('secondary', () => download(codes), [icon('download'), ACCOUNT.downloadCodes]),
            newButton('secondary', () => print(), [icon('print'), ACCOUNT.printCodes]),
        ),
        foot(state.problem, h('label', {class: 'check'}, stored, ACCOUNT.stored), done),
    ];
}

export function openRecoveryCodes(made) {
    const state = {isShown: false, isStored: false, problem: problemSpace()};
    const form = workingForm({
        fields: [h('p', null, ACCOUNT.recoveryText), h('p', null, ACCOUNT.recoveryLead)],
        submitText: ACCOUNT.recoverySubmit,
        workingText: ACCOUNT.recoveryWorking,
        cancel: () => dialog.close(),
        submit: async () => {
            const {recovery_codes: codes} = await call('POST', '/v1/console/recovery_codes');

            state.isShown = true;
            addEventListener('beforeunload', warnUnload);
            dialog.replace(ACCOUNT.codesTitle, ...codesView(dialog, codes, state));
            announce(ACCOUNT.codesTitle);
            made();
        },
        explain: (refusal) => [explain(refusal)],
    });
    const dialog = openDialog({
        title: ACCOUNT.recoveryTitle,
        name: 'codes',
        content: form.element,
        mayClose: () => {
            if (!state.isShown || state.isStored) return true;
            show(state.problem, notice('warn', ACCOUNT.notStored));
            state.problem.focus();
            return false;
        },
        closed: () => removeEventListener('beforeunload', warnUnload),
    });

    dialog.element.addEventListener('veil', () => {
        if (!state.isShown) return;
        state.isStored = true; // they can no longer be shown
        removeEventListener('beforeunload', warnUnload);
        dialog.replace(ACCOUNT.codesGoneTitle, notice('warn', ACCOUNT.codesGone), closeFoot(dialog));
    });
}
