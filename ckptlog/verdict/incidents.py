"""What is said of a thing that happened outside of any turn; no words of the log are in it."""

from __future__ import annotations

from ckptlog.timeline.model import Incident, Run
from ckptlog.verdict.crash import why_ended

#: by the grammar's wording of the error that tells most
NOT_STARTED = {
    **dict.fromkeys(("model", "exiting_model", "opening", "loading"), "the model could not be loaded."),
    "bind": (
        "it could not listen at its address. Another program has the port (perhaps a server that is still running), or the "
        "address is none of this machine's."
    ),
    "listener": "it could not listen at its address.",
    "http": "its HTTP server failed.",
    "exiting_http": "its HTTP server failed.",
    "template": "the chat template could not be used.",
    "multimodal": "the multimodal projector could not be loaded.",
    "draft": "the draft model could not be loaded.",
    "speculative": "speculation could not be set up.",
    "mtp_context": "speculation could not be set up.",
    "draft_context": "speculation could not be set up.",
    "speculator": "speculation could not be set up.",
    "router": "the router could not read its models.",
    "on_startup": "the router could not load the models it was to begin with.",
    "context": "there was no context to be had for the model: an adapter or a setting that does not fit it, or no memory for -c.",
}
#: a wording that has none of these yet
_OTHERWISE = "an error of its start ended it."


def incident_says(run: Run, incident: Incident) -> str:
    """Sentences for a person."""
    who = "The server" if run.port is None else f"The router's child on port {run.port}"
    match incident.kind:
        case "start-failed" if incident.how == "unsaid":
            return (
                f"{who} ended while it was loading its model, and did not say why: it was stopped or killed, or crashed, and was "
                "started anew. Look at the system's log (out of memory?), unless another server began to write into the same file."
            )
        case "start-failed":
            return f"{who} did not start: {NOT_STARTED.get(incident.how or '', _OTHERWISE)}"
        case "request-failed" if incident.how == "task":
            return "A request was answered with an error, and there is no turn of it in the log."
        case "request-failed" if incident.how == "proxy":
            return "The router could not pass a request on to the server of its model."
        case "request-failed":
            return "A request was answered with an error before it reached a slot."
        case "slot-file-failed" if incident.how == "save_slot":
            return "A slot could not be saved."
        case "slot-file-failed":
            return (
                "A slot's file could not be loaded; what the slot held before is gone, too. A file fits only the model and the "
                "settings it was saved with (-ctk, -ctv, --parallel, --kv-unified), and a slot with room for all of it."
            )
        case "model-unloaded":
            return (
                "The router ended this model's server to make room for another one (--models-max): what its slots held is gone, "
                "and its next prompt is read from the start."
            )
        case "server-ended" if incident.how == "unsaid":
            return (
                f"{who} was killed, or crashed, while it was idle: it started anew and had not said that it stops. Look at the "
                "system's log (out of memory?), unless lines are missing there or another server began to write into the same file."
            )
        case "server-ended":
            why, fix = why_ended(incident.words)
            when = "while no request was at work" if run.n_turns else "before its first request"
            return f"{who} ended {when}: {why}. {fix.text}"
