/** Short notifications from any place. */
import { Toast } from '@base-ui/react/toast';
import { wordsOf } from '../api/client.ts';

export const toasts = Toast.createToastManager();

const shownMs = 4_000;
/** Long enough to be read twice. */
const problemShownMs = 10_000;

export function tell(title: string, description?: string): void {
  toasts.add({ title, timeout: shownMs, ...(description && { description }) });
}

/** `title` names the failed action; the platform's message is the reason. */
export function tellProblem(title: string, error: unknown): void {
  toasts.add({
    title,
    description: wordsOf(error),
    type: 'problem',
    priority: 'high',
    timeout: problemShownMs,
  });
}
