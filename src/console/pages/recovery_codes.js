// Ten recovery codes, shown once.
import {ACCOUNT} from './account_texts.js';
import {call} from './api.js';
import {copySecretButton} from './copy.js';
import {announce, bullets, h, icon, newButton, plain} from './dom.js';
import {saveFile} from './file.js';
import {notice, workingForm} from './form.js';
import {openOnce} from './once.js';
import {explain} from './parts.js';
import {currentSession} from './session.js';

function asText(codes) {
    const head = ACCOUNT.codesHead(currentSession().user.email, location.origin);

    return [plain(head), '', ...codes, '', ACCOUNT.codesFoot, ''].join('\n');
}

const download = (codes) => saveFile(ACCOUNT.codesFile, new Blob([asText(codes)], {type: 'text/plain'}));

const codesView = (codes) => [
    notice('warn', ACCOUNT.codesText),
    h('p', {class: 'print-only'}, ACCOUNT.codesHead(currentSession().user.email, location.origin)),
    bullets(
        {'class': 'recovery-codes', 'aria-label': ACCOUNT.codes, 'tabindex': '0'},
        codes.map((code) => h('code', null, code)),
    ),
    h('p', {class: 'print-only'}, ACCOUNT.codesFoot),
    h(
        'div',
        {class: 'secret-actions'},
        copySecretButton(codes.join('\n'), ACCOUNT.copyCodes, 'primary'),
        newButton('secondary', () => download(codes), [icon('download'), ACCOUNT.downloadCodes]),
        newButton('secondary', () => print(), [icon('print'), ACCOUNT.printCodes]),
    ),
];

export function openRecoveryCodes(made) {
    const form = workingForm({
        fields: [h('p', null, ACCOUNT.recoveryText), h('p', null, ACCOUNT.recoveryLead)],
        submitText: ACCOUNT.recoverySubmit,
        workingText: ACCOUNT.recoveryWorking,
        cancel: () => dialog.close(),
        submit: async () => {
            const {recovery_codes: codes} = await call('POST', '/v1/console/recovery_codes');

            dialog.reveal(ACCOUNT.codesTitle, ...codesView(codes));
            announce(ACCOUNT.codesTitle);
            made();
        },
        explain: (refusal) => [explain(refusal)],
    });
    const dialog = openOnce({title: ACCOUNT.recoveryTitle, name: 'codes', content: form.element, texts: ACCOUNT.once});
}
