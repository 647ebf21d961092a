// The console runs in browsers, everything else in Node.js. Tests of the console contain functions that their browser runs.
import js from '@eslint/js';
import globals from 'globals';

export default [
    {ignores: ['test/meta/wrong-*/']},
    {
        ...js.configs.recommended,
        rules: {
            ...js.configs.recommended.rules,
            eqeqeq: 'error',
            'no-shadow': 'error',
            'no-unused-vars': ['error', {ignoreRestSiblings: true}],
            'no-var': 'error',
            'prefer-const': 'error',
        },
        linterOptions: {reportUnusedDisableDirectives: 'error'},
    },
    {files: ['**/console/pages/**'], languageOptions: {globals: globals.browser}},
    {files: ['docker/**', 'test/**'], languageOptions: {globals: globals.node}},
    {files: ['test/console/**'], languageOptions: {globals: {...globals.browser, ...globals.node}}},
];
