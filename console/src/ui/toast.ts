/** What has happened, told in passing, from anywhere. */
import { Toast } from '@base-ui/react/toast';
import { wordsOf } from '../api/client.ts';

export const toasts = Toast.createToastManager();

const shownMs = 4_000;
/** Long enough to be read twice. */
const problemShownMs = 10_000;

export function tell(title: string, description?: string): void {
  toasts.add({ title, timeout: shownMs, ...(description && { description }) });
}

/** `title` says what did not work, the platform why. */
export function tellProblem(title: string, error: unknown): void {
  toasts.add({
    title,
    description: wordsOf(error),
    type: 'problem',
    priority: 'high',
    timeout: problemShownMs,
  });
}
