/** Runs a skill that calls a model, with a fake model that the test controls. */

import type {
  GenerateRequest,
  SkillContext,
  SkillDefinition,
} from '../../src/core/skills/definition.ts';
import { type Trial, trySkill } from './try-skill.ts';

/** A text, or what the request's schema asks for. */
type Answer = string | object;

export interface FakeModel {
  readonly generate: SkillContext['generate'];
  /** The requests, in order. */
  readonly requests: readonly GenerateRequest[];
  /** The highest number of concurrent requests. */
  atOnceMax(): number;
}

/** A model that returns the results of `answer`, and rejects with its errors. */
export function fakeModel(
  answer: (request: GenerateRequest, number: number) => Answer | Promise<Answer>,
): FakeModel {
  const requests: GenerateRequest[] = [];
  let underWay = 0;
  let atOnce = 0;
  return {
    requests,
    atOnceMax: () => atOnce,
    async generate(request) {
      requests.push(request);
      underWay += 1;
      atOnce = Math.max(atOnce, underWay);
      try {
        const said = await answer(request, requests.length);
        const usage = {
          prompt_tokens: null,
          completion_tokens: null,
          total_tokens: null,
          cost_usd: null,
          cost_is_partial: true,
        };
        const text = typeof said === 'string' ? said : JSON.stringify(said);
        return request.schema === undefined
          ? { text, isCut: false, turns: 1, usage }
          : { text, output: said, isCut: false, turns: 1, usage };
      } finally {
        underWay -= 1;
      }
    },
  };
}

/** The model with cut answers to the requests that `which` selects; to all when it is left out. */
export function cutShort(
  model: FakeModel,
  which: (request: GenerateRequest) => boolean = () => true,
): FakeModel {
  return {
    ...model,
    async generate(request) {
      return { ...(await model.generate(request)), isCut: which(request) };
    },
  };
}

/** Like `trySkill`, with the model. */
export function tryThinking<Input, Output>(
  skill: SkillDefinition<Input, Output>,
  input: Input,
  model: FakeModel,
  trial: Trial = {},
): Promise<Output> {
  return trySkill(skill, input, { ...trial, generate: model.generate });
}

/** The text between the tags of a prompt. */
export function textIn({ prompt }: GenerateRequest): string {
  const [, text] = /^<([a-z0-9-]+)>\n([\s\S]*)\n<\/\1>\n\n[^\n]+$/.exec(prompt)?.slice(1) ?? [];
  if (text === undefined) throw new Error(`No text between tags in: ${prompt.slice(0, 200)}`);
  return text;
}
