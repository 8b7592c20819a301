/** Joins class names; what is not to be there is false, null or undefined. */
export const classes = (...names: (string | false | null | undefined)[]): string =>
  names.filter(Boolean).join(' ');
