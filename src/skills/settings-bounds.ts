/** The bounds of the values of settings. */

/** UTF-8 bytes of a value. */
export const valueBytesMax = 8_192;
/** Characters of the shortest secret: a shorter one could not be told from ordinary text in what a run says. */
export const secretCharsMin = 4;
