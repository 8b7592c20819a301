/**
 * How many tokens a prompt will have, before it is sent: from its size, and from what the provider
 * reported for earlier prompts of the same model, since tokenizers differ and nobody ships all of them.
 */

/** Of a model that has reported nothing yet. A size counts three bytes a token; English has four. */
const unknownRatio = 0.75;
/** Reports that are remembered of a model; the largest of them counts, with this much on top. */
const remembered = 20;
const margin = 1.1;
/** Beyond these, a report says more about the provider's counting than about tokens. */
const bounds = { least: 0.02, most: 3 };
/** Models that are remembered; the oldest goes first. */
const modelsMax = 1_000;

export interface Estimates {
  /** Tokens that a prompt of this size (see `tokensOfText`) will have. */
  tokens(model: string, size: number): number;
  /** Learns what a prompt of this size had. */
  learn(model: string, size: number, reported: number): void;
}

export function createEstimates(): Estimates {
  const ratios = new Map<string, number[]>();
  return {
    tokens(model, size) {
      const known = ratios.get(model);
      const ratio = known === undefined ? unknownRatio : Math.max(...known) * margin;
      // What binary fractions add is no token.
      return Math.ceil(size * ratio - 1e-6);
    },

    learn(model, size, reported) {
      if (reported <= 0) return;
      const ratio = Math.min(bounds.most, Math.max(bounds.least, reported / size));
      const known = ratios.get(model) ?? [];
      if (known.length === 0 && ratios.size >= modelsMax) {
        ratios.delete(ratios.keys().next().value as string);
      }
      ratios.set(model, [...known, ratio].slice(-remembered));
    },
  };
}
