// The texts of My account, of setting a password and of setting up an authenticator.
import {say} from './dom.js';
import {plural} from './texts.js';

export const PASSWORD = {
    current: 'Current password',
    choose: 'New password',
    rules: '12 to 256 characters. A few unrelated words are easier to remember than symbols.',
    rulesMore: 'Common passwords and ones made of your email or of this product’s name are refused.',
    missing: 'Choose a password.',
    currentMissing: 'Enter your current password.',
    tooShort: (n) => `${n} ${plural(n, 'character', 'characters')} so far: at least 12 are needed.`,
    tooLong: 'At most 256 characters.',
    hasEmail: 'It contains your email address. Choose something else.',
    same: 'This is the password that you have now. Choose another.',
    weak: 'This password is too easy to guess. Choose something less common.',
};

export const AUTHENTICATOR = {
    scan: 'Scan this with an authenticator app on your phone, such as Aegis, 2FAS, Google Authenticator or a password manager.',
    qr: 'QR code with the secret of your new authenticator',
    byHand: 'Cannot scan? Enter this key by hand:',
    copy: 'Copy key',
    openHere: 'Open in an app on this device',
    code: 'Code shown by the app',
    codeHint: 'Six digits. They change every 30 seconds.',
    wrong: 'This code is wrong or has expired. Enter the one that the app shows now.',
    wrongAgain:
        'The code is wrong again. Check your phone’s clock: set date and time to automatic, then enter the new code.',
};

const placeOf = ({browser, ip}) => (ip ? say`${browser} at ${ip}` : say`${browser}`);

export const ACCOUNT = {
    title: 'My account',
    lead: 'How you sign in, and where you are signed in.',

    welcomeTitle: (account, role) => say`Welcome to ${account}. You are signed in, as ${role}.`,
    welcomeText: 'Next, get recovery codes: without your phone, only they or an owner can get you back in.',
    welcomeNext: 'Go to the API keys',

    role: 'Role',
    lastSignIn: 'Sign-in before this one',
    userId: 'User id',
    accountId: 'Account id',

    signInTitle: 'Signing in',
    password: 'Password',
    passwordText: 'Changing it ends all your other sessions.',
    changePassword: 'Change password',
    factor: 'Authenticator app',
    factorText: 'Makes the six-digit codes. Set up a new one before you give your old phone away.',
    newFactor: 'Set up a new one',
    recovery: 'Recovery codes',
    recoveryText: 'Ten codes for the day you lose your phone. Each lets you set up a new authenticator, once.',
    recoveryLeft: (n) => (n === 0 ? 'You have none.' : `${n} of 10 left.`),
    newRecovery: 'Get new codes',

    passwordTitle: 'Change your password',
    passwordRequiredTitle: 'Choose your own password',
    passwordRequired:
        'Your password was set by somebody else. Before you go on, choose one that only you know. You need a new code from your authenticator.',
    passwordSubmit: 'Change password',
    passwordWorking: 'Changing…',
    passwordDone: 'Your password was changed. All your other sessions have ended.',
    wrong: 'Current password or code is wrong. Each code works once: if you have just used it, wait for the next one.',

    factorTitle: 'Set up a new authenticator',
    factorLead: 'Your current one keeps working until you have confirmed the new one.',
    factorStart: 'Continue',
    factorStarting: 'Checking…',
    factorScanTitle: 'Scan and confirm',
    factorConfirm: 'Confirm',
    factorConfirming: 'Confirming…',
    factorDoneTitle: 'The new authenticator is in use',
    factorDone: 'From now on only its codes count. Remove the old entry from the old app.',
    factorGoneTitle: 'Start again',
    factorGone: 'Your session ended, or this took too long, so the secret was taken off the screen. Nothing was changed.',

    recoveryTitle: 'Get ten recovery codes',
    recoveryLead: 'They replace the codes that you may have. The old ones stop working.',
    recoverySubmit: 'Show new codes',
    recoveryWorking: 'Making codes…',
    codesTitle: 'Keep these codes safe',
    codesText:
        'They are shown only now. Keep them where you can reach them without your phone: printed, or in a password manager.',
    codes: 'Recovery codes',
    copyCodes: 'Copy codes',
    downloadCodes: 'Download',
    printCodes: 'Print',
    codesFile: 'chatelaine-recovery-codes.txt',
    codesHead: (email, origin) => say`Recovery codes for ${email} at ${origin}`,
    codesFoot: 'Each works once, together with your password, to set up a new authenticator.',
    once: {
        stored: 'I have stored them',
        notStored: 'Tick “I have stored them” first: the codes cannot be shown again.',
        goneTitle: 'The codes are no longer shown',
        gone: 'Your session ended, so the codes were taken off the screen. If you have not stored them, get new ones.',
        finish: 'Done',
    },

    systemTitle: 'This service',
    systemText: 'Whether revoked keys are refused everywhere, as the service measures it itself.',
    system: 'See the last measurement',

    sessionsTitle: 'Sessions',
    sessionsText: (idle, until) => `This one ends after ${idle} without activity, at the latest on ${until}.`,
    sessionsTable: 'Your sessions',
    columns: {browser: 'Browser', ip: 'Address', seen: 'Last active', begun: 'Signed in', actions: 'Actions'},
    current: 'This browser',
    end: 'End',
    endNamed: (session) => say`End the session of ${placeOf(session)}`,
    ending: 'Ending…',
    endOthers: 'End all others',
    endOthersTitle: 'End all other sessions?',
    endOthersText: 'All your other browsers are signed out at once. This one stays signed in.',
    endOthersSubmit: 'End all others',
    endTitle: 'End this session?',
    endText: (session) => say`${placeOf(session)} is signed out at once.`,
    endSubmit: 'End session',
    ended: 'The session has ended.',
    othersEnded: 'All other sessions have ended.',
    noOthers: 'You are signed in nowhere else.',
    notYou: 'If you do not recognise one of them, end it and change your password.',

    minutes: (n) => `${n} ${plural(n, 'minute', 'minutes')}`,
};
