// no-descending-specificity compares rules of different components that end alike, as in ".search .icon".
// Whoever chooses a larger text gets a larger page: sizes are rem, and px are for lines and their like.
export default {
    extends: 'stylelint-config-recommended',
    rules: {
        'no-descending-specificity': null,
        'declaration-property-value-disallowed-list': {'/./': ['/(^|[^0-9.])(\\d{2,}|[4-9])(\\.\\d+)?px/']},
        'media-feature-name-unit-allowed-list': {'/width/': ['em']},
    },
};
