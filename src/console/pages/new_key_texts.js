// The texts that all new keys have in common.

export const NEW_KEY = {
    nameMissing: 'Give the key a name, so that you can find it in an emergency.',
    nameLong: 'The name can have 200 characters at most.',
    doneTitle: 'Store the secret now',
    doneText: 'It is shown only this once. Nobody can look it up later.',
    secret: 'Secret',
    copySecret: 'Copy secret',
    download: 'Download .env',
    tryIt: 'Try it',
    tryText: (file) => `With ${file} in the current folder:`,
    stored: 'I have stored it',
    finish: 'Done',
    goneTitle: 'The secret is no longer shown',
    gone: 'Your session ended, so the secret was taken off the screen. If you have not stored it, revoke this key and create another.',
    notStored: 'Tick “I have stored it” first: the secret cannot be shown again.',
};
