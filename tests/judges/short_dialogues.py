"""Short dialogues written for the tests of the judges room."""

from __future__ import annotations

from xlc_utils.judges.released import Dialogue, Turn

PARAMETERS = {
    "industry": "pet retail",
    "problem": "track_refund",
    "channel": "chat",
    "agent_experience": "junior",
    "agent_type": "bot",
}

TEXTS = {
    "en": [
        "Hello Anna! Thank you for contacting us. How can I help you today?",
        "Hello! I ordered a dog bed last week and the parcel has not arrived. My order number is 4711.",
        "I am sorry to hear that. I have checked the order: the parcel leaves our warehouse tomorrow.",
        "Thank you for your help. Have a nice day!",
    ],
    "et": [
        "Tere, Anna! Aitäh, et kirjutasite. Kuidas saan teid täna aidata?",
        "Tere! Tellisin eelmisel nädalal koerapesa ja pakk ei ole kohale jõudnud.",
        "Mul on kahju. Vaatasin tellimust: pakk lahkub meie laost homme.",
        "Aitäh abi eest. Kena päeva!",
    ],
    "fi": [
        "Hei Anna! Kiitos yhteydenotosta. Kuinka voin auttaa teitä tänään?",
        "Hei! Tilasin viime viikolla koiran pedin, eikä pakettia ole näkynyt.",
        "Olen pahoillani. Tarkistin tilauksen: paketti lähtee varastostamme huomenna.",
        "Kiitos avusta. Hyvää päivänjatkoa!",
    ],
    "hu": [
        "Jó napot, Anna! Köszönjük, hogy írt nekünk. Miben segíthetek ma?",
        "Jó napot! A múlt héten rendeltem egy kutyafekhelyet, de a csomag nem érkezett meg.",
        "Nagyon sajnálom. Megnéztem a rendelést: a csomag holnap indul a raktárunkból.",
        "Köszönöm a segítséget. Szép napot!",
    ],
}


def dialogue(language: str, turns: list[str], index: int = 0, model: str = "some-model", **parameters) -> Dialogue:
    """A dialogue of alternating turns that the agent begins."""
    senders = ("agent", "customer")
    return Dialogue(
        language,
        model,
        index,
        tuple(Turn(senders[i % 2], ("Klaus", "Anna")[i % 2], text) for i, text in enumerate(turns)),
        PARAMETERS | parameters,
    )
