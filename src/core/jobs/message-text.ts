/** An input or output as a message shows it: a string as itself, anything else as JSON. */
export function messageText(json: string): string {
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}
