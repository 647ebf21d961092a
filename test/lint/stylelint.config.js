// no-descending-specificity compares rules of different components that end alike, as in ".search .icon".
export default {extends: 'stylelint-config-recommended', rules: {'no-descending-specificity': null}};
