"""Suffix decoding of Arctic Inference behind a pipe; run by an interpreter that has the package.

One JSON array a line. ["cache", depth, settings] starts with nothing known, ["begin", prompt] starts an
answer, ["commit", tokens] adds to it, and ["propose", limit] is answered by [tokens, parents, probs]:
``parents`` are indexes into ``tokens`` (-1 is the end of the text), ``probs`` of the whole way there.
"""

from __future__ import annotations

import json
import sys

from arctic_inference.suffix_decoding import SuffixDecodingCache


def serve() -> None:
    cache, depth, settings = None, 0, {}
    answers, context = 0, []
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        if what == "cache":
            depth, settings = arguments
            cache, answers = SuffixDecodingCache(depth), 0
        elif what == "begin":
            if answers:
                cache.stop_request(answers)
            answers += 1
            prompt = arguments[0]
            cache.start_request(answers, prompt)
            context = prompt[-depth - 1 :]
        elif what == "commit":
            cache.add_active_response(answers, arguments[0])
            context = (context + arguments[0])[-depth - 1 :]
        else:
            draft = cache.speculate(answers, context, max_spec_tokens=arguments[0], **settings)
            print(json.dumps([draft.token_ids, draft.parents, draft.probs]), flush=True)


serve()
