/** What a check of `skillwright doctor` found. */

export interface Finding {
  readonly check: string;
  /** A platform with a fault does not start or does not work; a warning says what may go wrong later. */
  readonly state: 'ok' | 'warning' | 'fault';
  readonly message: string;
  /** What to do, as the end of the message. */
  readonly remedy?: string;
}

export function fault(check: string, message: string, remedy: string): Finding {
  return { check, state: 'fault', message, remedy };
}

export function warning(check: string, message: string, remedy: string): Finding {
  return { check, state: 'warning', message, remedy };
}

export function ok(check: string, message: string): Finding {
  return { check, state: 'ok', message };
}
