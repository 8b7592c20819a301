/** Headers are bytes: a name in UTF-8 is sent as such. */
export const headerText = (text: string) => String.fromCharCode(...new TextEncoder().encode(text));
