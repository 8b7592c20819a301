/** A call of a tool over a connection. */
import type {
  CallToolResult,
  ElicitRequestFormParams,
  ElicitRequestURLParams,
  ElicitResult,
  Progress,
  Tool,
} from '@modelcontextprotocol/client';
import type { Json } from '../../../kernel/json.ts';
import type { CalledTool, RemoteSource } from '../remote-kind.ts';
import type { RemoteRun } from '../remote-run.ts';
import { withKeptFiles } from './kept-files.ts';
import {
  answersOf,
  inputRequired,
  type QuestionPlace,
  questionOf,
  questionsInFault,
  questionsOf,
  requireOpened,
} from './questions.ts';
import { outputOf } from './results.ts';
import type { ServerClient } from './server-client.ts';
import { putBack } from './set-aside.ts';

/** Milliseconds of the longest timer. */
const timerMsMax = 2 ** 31 - 1;

/** The name of the tool that reads resources. MCP tool names contain no colon, so it is unique. */
export const readResource = 'read:resource';

/** One of the calls of a connection, which get the messages of the server meanwhile. */
export class ToolCall {
  readonly run: RemoteRun;
  readonly #tool: CalledTool;
  readonly #input: unknown;
  readonly #place: QuestionPlace;

  constructor(source: RemoteSource, tool: CalledTool, input: unknown, run: RemoteRun) {
    this.run = run;
    this.#tool = tool;
    this.#input = input;
    this.#place = { service: source.name, tool: tool.name, input };
  }

  /** Calls the tool; returns its output, or the questions to answer before it is called again. */
  async send(client: ServerClient): Promise<unknown> {
    const end = client.begin(this);
    try {
      const result = putBack(await this.#request(client));
      if (inputRequired(result)) return questionsOf(result, this.#place);
      if (this.#tool.name === readResource) {
        const { contents } = result as { contents: unknown };
        return await withKeptFiles(this.run, { contents });
      }
      const log = (line: string) => this.run.log(line);
      return await withKeptFiles(this.run, outputOf(this.#tool, result as CallToolResult, log));
    } catch (error) {
      const questions = questionsInFault(error, this.#place);
      if (questions === undefined) throw error;
      return questions;
    } finally {
      end();
    }
  }

  /** Asks a person a question of the server. */
  async ask(params: ElicitRequestFormParams | ElicitRequestURLParams): Promise<ElicitResult> {
    try {
      return (await this.run.ask(questionOf('', params, this.#place))) as ElicitResult;
    } catch (error) {
      if (!this.run.signal.aborted) throw error;
      // No question of a call that was given up is answered: the server has been sent its cancellation.
      return new Promise<never>(() => {});
    }
  }

  async #request({ sdk }: ServerClient): Promise<unknown> {
    const { run } = this;
    const { name, input: inputSchema } = this.#tool;
    const options = {
      signal: run.signal,
      // No timeout of the SDK: the run has its own limit, which is paused while a person is asked.
      timeout: timerMsMax,
      allowInputRequired: true,
      onprogress: ({ progress, total, message }: Progress) => {
        const fraction = total === undefined || total <= 0 ? 0 : progress / total;
        run.progress(fraction, message ?? (total === undefined ? String(progress) : undefined));
      },
    };
    const isModern = sdk.getProtocolEra() === 'modern';
    const more = {
      ...(isModern && { _meta: { 'io.modelcontextprotocol/logLevel': 'info' } }),
      ...(isModern && run.answered !== null && answersOf(run.answered)),
    };
    // A server of the 2025 revision needs the page opened and expects no answers in the repeated call.
    if (!isModern && run.answered !== null) requireOpened(run.answered);
    run.sending();
    if (name === readResource) {
      const { uri } = this.#input as { uri: string };
      return sdk.request({ method: 'resources/read', params: { uri, ...more } }, options);
    }
    const toolDefinition = { name, inputSchema } as Tool;
    const params = { name, arguments: this.#input as Json, ...more };
    return sdk.callTool(params, { ...options, toolDefinition });
  }
}
