/** An input or output as a message shows it: a string as itself, anything else as JSON. */
export function messageText(json: string): string {
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

/** The task in the input of a job, which is a message of its user: the field that the skill names, else the whole input. */
export function taskIn(input: string, field: string | null): string {
  if (field === null) return input;
  try {
    const task = (JSON.parse(input) as Record<string, unknown>)[field];
    return typeof task === 'string' ? task : input;
  } catch {
    return input;
  }
}
