const one = 1;
export const two = (one) => one;
export const three = one;
