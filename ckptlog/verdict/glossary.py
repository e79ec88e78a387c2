"""Texts for the names that no rule class carries: outcomes, variants, fixes.

Each text: a title line, a blank line, paragraphs; a last paragraph may begin with "Example: ".
"""

from __future__ import annotations

from ckptlog.replay.loss import HARMLESS_SHARE, HARMLESS_TOKENS, HARMLESS_TOKENS_OF_LONG

OUTCOMES: dict[str, str] = {
    "arrival-rejection": """
        The request was refused at the door

        The prompt is as long as the slot's context or longer (for embeddings: longer than a physical batch). The
        server answers HTTP 400 (500 for a batch) and processes nothing; the slot keeps what it held.

        Example: request (9216 tokens) exceeds the available context size (8192 tokens), try increasing it""",
    "limit-stop": """
        The answer stopped because the context was full

        Prompt and answer filled the slot to its last token, and context shift was off. The client sees only
        "finish_reason": "length", the same as for max_tokens.

        Example: stop processing: n_tokens = 8191, truncated = 1 in a slot of 8,192""",
    "context-shift": """
        A slice of the context was deleted and the answer went on

        With context shift on, a full context loses a slice: the first n_keep tokens stay, half of the rest behind
        them goes. With n_keep 0 that is the system prompt. Nothing tells the client.

        Example: slot context shift, n_keep = 0, n_left = 8191, n_discard = 4095""",
    "checkpoint-reprefill": """
        The prompt was processed again although its beginning had been there

        The new prompt shares a beginning with what the slot held, but this model's memory (sliding window, hybrid,
        recurrent) can't be rewound, and no context checkpoint fitted. The tokens in common were evaluated
        again. It is harmless under 128 tokens, or under 512 tokens and 5 % of the prompt; else costly.

        Example: 8,623 tokens in common, 0 reused""",
    "reused": """
        Went on from where the slot was

        The whole common prefix was reused (all but the last token, if nothing was new). Healthy.""",
    "restored": """
        Resumed from a context checkpoint

        A checkpoint near the divergence was restored, little was lost. Healthy.""",
    "cold": """
        A fresh prompt

        The slot held nothing, or nothing in common with this prompt. Healthy: every conversation starts so.""",
    "cancelled": """
        The client went away, or the server was stopped

        The connection was closed before the answer was complete; what was processed stays in the slot. Or the server
        was told to stop meanwhile (variant server-stopped).""",
    "error": """
        The server gave up the request

        A server error: a full unified cache, a refused shift, a crash, an invalid request.""",
    "not-completion": """
        No completion

        An embedding, a rerank, or an empty prompt: there is nothing to judge about reuse.""",
    "unknown": """
        The log does not show it

        The lines that would tell are missing (log level, a cut log). The report says how to capture more.""",
}

VARIANTS: dict[str, str] = {
    "near-miss": """
        Refused, but close

        The prompt is up to 1.1 times the context: cutting a little of the history is enough.""",
    "oversized": """
        Refused, far too long

        The prompt is more than 1.1 times the context.""",
    "one-batch": """
        Refused: the input must fit in one batch

        Embeddings and rerank inputs are processed in one physical batch (-ub); the context size does not matter.""",
    "head": """
        The hole begins at the very beginning

        n_keep is 0 (or 1 with BOS): the system prompt is the first thing to go.""",
    "history": """
        The hole lies inside the prompt

        The first n_keep tokens stay, the conversation's history behind them goes; where n_keep covers no more than a
        template's header (--keep 4), the system prompt too.""",
    "generated": """
        The hole lies in the answer

        n_keep covers the whole prompt (--keep -1): only earlier parts of the answer go.""",
    "input": """
        The prompt itself was cut

        Builds up to b6628 with context shift on shorten a prompt that is too long instead of refusing it: behind its
        first n_keep tokens (0 unless asked for, so that the system prompt goes first).""",
    "full": """
        Processed again from the beginning

        At most 8 tokens were reused, whatever the log's verb says.""",
    "partial": """
        Resumed far back

        A checkpoint was restored, but more than half of the common prefix (and at least 128 tokens) was lost.""",
    "silent": """
        Processed again without a line that says so

        The log's level hides the checkpoint messages; the loss follows from the counts.""",
    "crash": """
        The server went down

        A new server start stands in the log before the turn's end, or the process's last words: a check that failed, an
        error of the device, an uncaught exception, or what the shell, the service manager or the router said of its
        end. (They count only where the server says nothing behind them.)""",
    "server-stopped": """
        The server was stopped

        It was told to stop (Ctrl-C, a service manager, its router) while it was at work on the request, and ended before
        the answer was complete.""",
}

FIXES: dict[str, str] = {
    "raise-checkpoint-count": """
        Keep more checkpoints a slot

        --ctx-checkpoints N (up to b6628: --swa-checkpoints). Each costs host RAM (the size is in the log), no VRAM.""",
    "enable-checkpoints": """
        Switch checkpoints on

        --ctx-checkpoints 32 is the default of current builds.""",
    "smaller-spacing": """
        Let checkpoints lie closer together

        --checkpoint-min-step N (b9310 and later), --checkpoint-every-n-tokens N (b8352 to b9305).""",
    "wider-spacing": """
        A wide spacing with a moderate count

        From b9981 on the server thins out checkpoints that lie closer than --checkpoint-min-step to an earlier one,
        and so keeps the oldest of a stretch: with the default of 8192 a small list holds on to the end of the system
        prompt, which a spacing of 0 would push out.""",
    "no-count-helps": """
        No number of checkpoints saves this turn

        A replay of the log with up to 64 checkpoints a slot loses as much: look at what the request changed.""",
    "without-swa-full": """
        Leave --swa-full out

        Checkpoints are made then; the RAM prompt cache keeps them with a prompt, which of the memory keeps only the
        window.""",
    "swa-full": """
        Keep the whole sliding-window cache

        --swa-full: no checkpoints needed, at the price of the full context's memory. Only for sliding-window models.""",
    "keep-the-head-stable": """
        Send the beginning of the prompt unchanged

        Clocks, ids, file lists and memories belong in the last user message.""",
    "split-long-messages": """
        Put what stays the same into messages of its own

        The server makes checkpoints where user messages begin. A change deep inside one long message can only be
        resumed from that message's beginning.""",
    "use-chat-endpoint": """
        Use the chat endpoint

        /v1/chat/completions tells the server where user messages begin; raw prompts don't.""",
    "name-delimiters": """
        Name a delimiter in the request

        message_delimiters in the request (b10227 and later) tells the server where messages begin, for prompts whose
        template does not.""",
    "lower-slot-similarity": """
        Let less alike prompts use a slot again

        --slot-prompt-similarity N (0.1 by default): a free slot is used again only for a prompt of which it holds more
        than this share. With a high value a conversation that grew by a long message gets another slot and starts
        anew. 0 switches the comparison off: always the slot that was idle longest.""",
    "give-each-conversation-a-slot": """
        A slot for each conversation

        --parallel N; without a unified cache -c is split between the slots.""",
    "free-slot-choice": """
        Let the server choose the slot

        Without id_slot in the request the server takes the slot that shares most with the prompt.""",
    "larger-prompt-cache": """
        More room for the RAM prompt cache

        --cache-ram MiB: conversations that lose their slot come back from host RAM.""",
    "larger-context": """
        A larger context

        -c N; with several slots each gets its share unless the cache is unified. From b6901 on no slot gets more
        than the model was trained for (n_ctx_train), whatever -c says.""",
    "fewer-slots": """
        Fewer slots

        --parallel N: fewer conversations at a time share the context.""",
    "shorten-history": """
        Compact the history earlier

        Most agents have a setting for the context size: set it below the slot's.""",
    "larger-batch": """
        A larger physical batch

        -ub N -b N: embeddings and rerank inputs must fit in one.""",
    "no-speculation": """
        No speculation

        Without --spec-type, without a draft model: nothing is drafted, so nothing stays behind an answer's end. Answers
        come more slowly; prompts of conversations that go on are not processed again.""",
    "fewer-drafts": """
        Fewer drafted tokens

        A smaller number of tokens drafted at a time (--spec-draft-n-max, or --draft-max): a block of them runs past an
        answer's end less often.""",
    "upgrade-server": """
        Upgrade llama-server

        A later build does not have this fault.""",
    "send-cache-prompt": """
        Let the request use the cache

        "cache_prompt": true, or leave the field out.""",
    "no-shift": """
        Don't shift

        Without --context-shift a full context ends the answer, and the client can react.""",
    "keep-the-prompt": """
        Keep the prompt when shifting

        "n_keep": -1 in the request, or --keep -1.""",
    "split-cache": """
        Split the KV cache

        --no-kv-unified: each slot has its own cells.""",
    "client-timeout": """
        A longer time-out in the client

        Long prompts take minutes on small machines.""",
    "check-restore": """
        Look at the errors before a checkpoint failed to load

        The line before may say why; no flag of the checkpoints is to blame.""",
    "save-slot-again": """
        Save the slot again

        POST /slots/N?action=save with the server and the flags of now: a file of another build or model setting may
        carry checkpoints that can't be loaded.""",
    "check-cache-load": """
        Find out why the saved prompt could not be loaded

        The lines before it name the reason.""",
    "device-memory": """
        Leave the device more memory

        A smaller -c or -ub, fewer layers on it (-ngl), or a quantized cache (-ctk and -ctv).""",
    "host-memory": """
        Leave the host more memory

        A smaller --cache-ram, fewer --ctx-checkpoints, a smaller -c. The system's log tells whether it was that.""",
    "device-failed": """
        Look at the driver and the device

        The backend gave up after an error of the device or its driver.""",
    "report-crash": """
        A newer build, or a report

        A check of the server's own, or an error that nothing caught, ended the process.""",
    "report-error": """
        A newer build, or a report

        The log shows no setting that is to blame for the error.""",
    "look-before-restart": """
        Look at the lines before the restart

        The last lines of the old process, and the system's log, tell why it ended.""",
}

#: words of a report that are neither a verdict nor advice
WORDS: dict[str, str] = {
    "slot": """
        One place for a conversation

        The server works on as many requests at a time as it has slots (--parallel). Each slot keeps the tokens of
        the last conversation that ran in it, so that the next request of that conversation can go on from there.""",
    "turn": """
        One request on one slot

        From its launch (or its refusal) to the end of its answer; the server calls it a task. Turns are numbered from
        1 in the order of the log.""",
    "task": """
        The server's number for a request

        As in "id  0 | task 614": slot 0 works on task 614. ckptlog calls the same a turn, and counts turns from 1.""",
    "fine": """
        Nothing went wrong in the turn

        Its outcome is reused, restored, cold or not-completion, or it lost so little that it is harmless.""",
    "n_past": """
        How many tokens of the prompt need not be processed

        What the server goes on from: the common prefix with what the slot held, or the place of the checkpoint that
        it restored. The report calls it "from cache".""",
    "pos_min": """
        Where the state that a checkpoint holds begins; pos_max is where it ends

        On hybrid and recurrent models both are the same: one state, that of the last token. On sliding-window models
        the window lies between them. A checkpoint fits if it ends before the place where the prompts part and reaches
        back far enough.""",
    "n_keep": """
        How many tokens at the beginning a context shift leaves alone

        Set by the request, or by --keep; -1 keeps the whole prompt. With 0 the system prompt is the first thing to
        go.""",
    "kv-unified": """
        One KV cache for all slots

        --kv-unified: each slot may take all of -c, but together they have no more than that. Without it -c is split
        evenly between the slots.""",
    "checkpoint": """
        A saved state to which a slot can go back

        Hybrid, recurrent and sliding-window memory can't be rewound. While it processes a prompt, the server
        therefore saves its state now and then, in host RAM, and later resumes from the last checkpoint before the
        place where a new prompt parts from the old one. --ctx-checkpoints says how many a slot may keep.""",
    "lost": """
        Tokens processed again although they had been held

        What the new prompt shares with what the slot held, less what came from the cache. Where a conversation's slot
        was taken or its entry in the prompt cache let go, the report counts from what the server had held of it.""",
    "re-prefill": """
        The prompt was processed again: the outcome checkpoint-reprefill

        As a table says it. `ckptlog explain checkpoint-reprefill` tells the rest.""",
    "refused": """
        The request was refused: the outcome arrival-rejection

        As a table says it. `ckptlog explain arrival-rejection` tells the rest.""",
    "harmless": f"""
        A re-prefill that cost next to nothing

        Fewer than {HARMLESS_TOKENS} tokens were lost, or fewer than {HARMLESS_TOKENS_OF_LONG} and less than
        {HARMLESS_SHARE:.0%} of the prompt. It does not count as failed.""",
    "costly": """
        A re-prefill worth attention

        It lost more than the limits of harmless allow, and counts as failed.""",
    "failed": """
        The turn went wrong in one of the four ways that have a fix

        arrival-rejection, context-shift, limit-stop, or a costly checkpoint-reprefill. Errors and cancelled requests
        are counted apart.""",
    "plain": """
        Memory that can be rewound to any token

        An ordinary transformer's KV cache: it goes back to where the prompts part, and needs no checkpoint.""",
    "swa": """
        Sliding-window memory

        Some layers keep only the last tokens (the window), as in Gemma 3 or gpt-oss: to go back further than the
        window, the server needs a checkpoint, or --swa-full.""",
    "hybrid": """
        Memory that is partly recurrent

        Attention layers beside recurrent ones, as in Qwen3.5 or Granite 4: the recurrent part can't go back without a
        checkpoint.""",
    "recurrent": """
        A running state instead of a KV cache

        As in Mamba or RWKV: the state holds the end of what was read and can't go back without a checkpoint.""",
    "observed": """
        How sure: the server printed it""",
    "derived": """
        How sure: it follows exactly from what the server printed""",
    "inferred": """
        How sure: estimated

        The log lacks a line that would settle it; the report says which, under "What this log can't tell".""",
    "cut": """
        The log ends before the turn does

        The turn's `ended` is `cut`: what was printed until then is used, the rest is unknown.""",
}
