/**
 * What of the conformance suite of the Model Context Protocol the platform fails, with the reason: the checks of each
 * scenario in each revision. A check that is not here passes; one that passes must not be here.
 */

const noResources =
  'The suite reads resources of its own; the platform serves the files of its skills alone.';
const noPrompts = 'The platform has no prompts.';
const noPush =
  'A server of 2025-11-25 asks its client in the middle of a call and gets the answer in another request. The platform keeps no sessions, so such a client is not asked; the approval is decided elsewhere.';
const noModelOfClient =
  'A skill asks the model of its agent. The platform never asks for the model or the files of a client, which the protocol deprecates.';
const noCompletion = 'Arguments of prompts are completed, and the platform has no prompts.';
const noModelTool =
  'Two of its checks need a tool that asks for the model of the client, which no skill does.';

interface ExpectedFailure {
  readonly checks: readonly string[];
  readonly reason: string;
}

type ExpectedFailures = Readonly<Record<string, ExpectedFailure>>;

const failing = (reason: string, ...checks: string[]): ExpectedFailure => ({ checks, reason });

/** By revision and scenario. */
export const expectedFailures: Readonly<Record<'2026-07-28' | '2025-11-25', ExpectedFailures>> = {
  '2026-07-28': {
    'completion-complete': failing(noCompletion, 'completion-complete'),
    'input-required-result-basic-list-roots': failing(
      noModelOfClient,
      'sep-2322-list-roots-incomplete',
    ),
    'input-required-result-basic-sampling': failing(
      noModelOfClient,
      'sep-2322-sampling-incomplete',
    ),
    'input-required-result-capability-check': failing(
      noModelOfClient,
      'sep-2322-respect-client-capabilities',
    ),
    'input-required-result-multiple-input-requests': failing(
      noModelOfClient,
      'sep-2322-multiple-inputs-incomplete',
    ),
    'input-required-result-non-tool-request': failing(noPrompts, 'sep-2322-non-tool-incomplete'),
    'prompts-get-embedded-resource': failing(noPrompts, 'prompts-get-embedded-resource'),
    'prompts-get-simple': failing(noPrompts, 'prompts-get-simple'),
    'prompts-get-with-args': failing(noPrompts, 'prompts-get-with-args'),
    'prompts-get-with-image': failing(noPrompts, 'prompts-get-with-image'),
    'resources-read-binary': failing(noResources, 'resources-read-binary'),
    'resources-read-text': failing(noResources, 'resources-read-text'),
    'resources-templates-read': failing(noResources, 'resources-templates-read'),
    'server-stateless': failing(
      noModelTool,
      'sep-2575-missing-capability-http-400',
      'sep-2575-server-rejects-undeclared-capability',
    ),
  },
  '2025-11-25': {
    'completion-complete': failing(noCompletion, 'completion-complete'),
    'elicitation-sep1034-defaults': failing(noPush, 'elicitation-sep1034-general'),
    'elicitation-sep1330-enums': failing(noPush, 'elicitation-sep1330-general'),
    'prompts-get-embedded-resource': failing(noPrompts, 'prompts-get-embedded-resource'),
    'prompts-get-simple': failing(noPrompts, 'prompts-get-simple'),
    'prompts-get-with-args': failing(noPrompts, 'prompts-get-with-args'),
    'prompts-get-with-image': failing(noPrompts, 'prompts-get-with-image'),
    'resources-read-binary': failing(noResources, 'resources-read-binary'),
    'resources-read-text': failing(noResources, 'resources-read-text'),
    'resources-subscribe': failing(noResources, 'resources-subscribe'),
    'resources-templates-read': failing(noResources, 'resources-templates-read'),
    'resources-unsubscribe': failing(noResources, 'resources-unsubscribe'),
    'tools-call-elicitation': failing(noPush, 'tools-call-elicitation'),
    'tools-call-sampling': failing(noModelOfClient, 'tools-call-sampling'),
  },
};
