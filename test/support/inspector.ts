/** A debugger of a process: pauses it at a line, as an editor does. */
import { pathToFileURL } from 'node:url';
import { waitFor } from './wait-for.ts';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
}

interface CallFrame {
  readonly location: { readonly scriptId: string; readonly lineNumber: number };
  readonly callFrameId: string;
}

export interface Inspector {
  /** Resolves once the process has the breakpoint; lines count from 1. */
  breakAt(file: string, line: number): Promise<void>;
  /** Where the process is paused, with the value of an expression there. */
  paused(expression: string): Promise<{ url: string; line: number; value: unknown }>;
  resume(): Promise<void>;
  close(): void;
}

/** The address of the process that can be debugged on a port; null while there is none. */
export async function inspectorOf(port: number): Promise<string | null> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/json/list`);
    const [target] = (await response.json()) as { webSocketDebuggerUrl: string }[];
    return target?.webSocketDebuggerUrl ?? null;
  } catch {
    return null;
  }
}

export async function attachInspector(address: string): Promise<Inspector> {
  const socket = new WebSocket(address);
  const answers = new Map<number, (result: Record<string, unknown>) => void>();
  const scripts = new Map<unknown, string>();
  let frames: readonly CallFrame[] | undefined;
  socket.addEventListener('message', ({ data }) => {
    const { id, method, params, result } = JSON.parse(String(data)) as Message;
    if (id !== undefined) answers.get(id)?.(result ?? {});
    if (method === 'Debugger.scriptParsed') scripts.set(params?.['scriptId'], `${params?.['url']}`);
    if (method === 'Debugger.paused') frames = params?.['callFrames'] as CallFrame[];
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', () => reject(new Error(`no debugger at ${address}`)));
  });
  const send = (method: string, params: object = {}): Promise<Record<string, unknown>> => {
    const id = answers.size + 1;
    const { promise, resolve } = Promise.withResolvers<Record<string, unknown>>();
    answers.set(id, resolve);
    socket.send(JSON.stringify({ id, method, params }));
    return promise;
  };
  await send('Debugger.enable');
  return {
    async breakAt(file, line) {
      const url = pathToFileURL(file).href;
      await send('Debugger.setBreakpointByUrl', { url, lineNumber: line - 1 });
    },
    async paused(expression) {
      const [frame] = await waitFor(() => frames ?? null, { describe: () => 'it is paused' });
      if (frame === undefined) throw new Error('paused nowhere');
      const { callFrameId, location } = frame;
      const url = scripts.get(location.scriptId) ?? '';
      const { result } = await send('Debugger.evaluateOnCallFrame', { callFrameId, expression });
      return { url, line: location.lineNumber + 1, value: (result as { value?: unknown }).value };
    },
    async resume() {
      frames = undefined;
      await send('Debugger.resume');
    },
    close: () => socket.close(),
  };
}
