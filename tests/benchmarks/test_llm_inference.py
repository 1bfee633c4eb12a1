"""Inference with a cache, and continuous batching."""

from __future__ import annotations

from itertools import islice

import pytest
from shipped_benchmarks import checked_lines, load, prepare, run_here

torch = pytest.importorskip("torch")
llm = load("llm_inference")
claims = load("llm_inference", "claims")
scheduling = load("llm_inference", "schedule")

from workload.models.language.attention import attend, build  # noqa: E402
from workload.models.language.cache import Decode, DecodeInGraph  # noqa: E402
from workload.models.language.decoder import Decoder  # noqa: E402
from workload.models.language.shapes import shape_of  # noqa: E402

CPU = torch.device("cpu")


def test_it_computes_what_it_claims(tmp_path):
    assert prepare("llm_inference", data=tmp_path) == tmp_path / "llm_inference" / "tiny"
    assert len(checked_lines("llm_inference", data=tmp_path)) == 7


@pytest.mark.long
def test_another_model_computes_what_it_claims(tmp_path):
    assert len(checked_lines("llm_inference", "--model", "gpt2", "--concurrency", "7", data=tmp_path)) == 7


@pytest.mark.parametrize("mode", ["prefill", "decode", "serve"])
def test_it_runs(tmp_path, mode):
    done = run_here("llm_inference", "--mode", mode, "--steps", "3", data=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def model_of(name):
    torch.manual_seed(0)
    made = build(lambda: Decoder(shape_of(name, "tiny")), CPU).eval()
    claims.stir(made)
    return made


def text_in(folder):
    return claims.tokens.prepare(folder, "tiny")


@pytest.fixture
def text(tmp_path):
    return text_in(tmp_path)


@pytest.mark.parametrize("name", ["gpt2", "llama-1b"])
def test_the_answer_is_the_one_that_is_found_without_a_cache_token_by_token(name, text):
    made = model_of(name)
    prompts = claims.tokens.batches(text, 1, 3, 40, CPU)[0]
    with torch.inference_mode():
        engine = claims.Engine(made, 3, 60)
        found = [engine.fill(prompts)]
        for place in range(40, 55):
            found.append(engine.decode(found[-1], place, place + 1))
        anew = prompts
        for _ in found:
            anew = torch.cat((anew, made(anew)[:, -1].argmax(-1, keepdim=True)), 1)
        answer = torch.stack(found, 1)
        assert torch.equal(answer, anew[:, 40:])
        assert len(answer.unique()) > 20  # or it would be a poor test
        same = claims.likeliest_without_cache(made, prompts[0], answer[0].tolist())
        other = claims.likeliest_without_cache(made, prompts[0], answer[1].tolist())
    assert (same, other < 4) == (16, True)


@pytest.mark.parametrize("name", ["gpt2", "llama-1b"])
def test_merged_matrices_and_the_cache_of_a_graph_give_the_same_answers(name, text):
    plain, merged = model_of(name), model_of(name)
    for block in merged.blocks:
        block.attention.merge()
        if name == "llama-1b":
            block.feed_forward.merge()
    assert claims.parameter_count(plain) == claims.parameter_count(merged)
    prompts = claims.tokens.batches(text, 1, 3, 40, CPU)[0]
    answers = []
    with torch.inference_mode():
        for made in (plain, merged):
            engine = claims.Engine(made, 3, 60)
            found = [engine.fill(prompts)]
            for place in range(40, 55):
                memory = None if made is plain else DecodeInGraph(engine.cache, place)
                found.append(engine._next(found[-1], place, place + 1, memory))
            answers.append(torch.stack(found, 1))
    assert torch.equal(*answers)
    assert len(answers[0].unique()) > 20


def without_writing(self, layer, query, key, value):
    keys, values = self._cache.keys[layer], self._cache.values[layer]
    return attend(query, keys[:, :, : self._seen], values[:, :, : self._seen], self._mask)


def one_place_further(self, last, places, seen):
    where = torch.tensor(places).expand(len(last))
    mask = (self._places[:seen] <= where[:, None])[:, None, None]
    scores = self._model(last[:, None], where[:, None] + 1, Decode(self.cache, where, seen, mask), True)
    return scores.argmax(-1)


def without_a_mask(self, last, places, seen):
    where = torch.tensor(places).expand(len(last))
    return self._model(last[:, None], where[:, None], Decode(self.cache, where, seen, None), True).argmax(-1)


CLAIMS = {"cache": claims.cache_claim, "serving": claims.serving_claim}


@pytest.fixture(scope="module", params=["gpt2", pytest.param("llama-1b", marks=pytest.mark.long)])
def sound(request, tmp_path_factory):
    """A model whose claims all hold, with what they are asked about."""
    asked = (
        llm.options_of(["--model", request.param]),
        model_of(request.param),
        text_in(tmp_path_factory.mktemp("text")),
    )
    with torch.inference_mode():
        assert all(claim(*asked).holds for claim in CLAIMS.values())
    return asked


@pytest.mark.parametrize(
    ("part", "method", "fault", "which"),
    [
        (Decode, "attend", without_writing, ["cache", "serving"]),
        (claims.Engine, "decode", one_place_further, ["cache", "serving"]),
        (claims.Engine, "decode", without_a_mask, ["serving"]),
    ],
)
def test_faults_of_the_cache_are_found(monkeypatch, sound, part, method, fault, which):
    monkeypatch.setattr(part, method, fault)
    with torch.inference_mode():
        assert [key for key, claim in CLAIMS.items() if not claim(*sound).holds] == which


@pytest.mark.parametrize(("slots", "concurrency"), [(4, 1), (4, 4), (4, 9), (1, 3)])
def test_requests_are_served_once_each_in_the_order_in_which_they_came(slots, concurrency):
    sent = scheduling.requests(20, 40, 12, seed=0)
    schedule = scheduling.Schedule(sent, slots, concurrency, 52)
    assert schedule.rows == min(slots, concurrency)
    admitted, completed, came = [], [], list(schedule.first)
    inside = {}
    for each in islice(schedule.passes(), 200):
        assert each.tokens == len(each.admitted) + len(each.running) <= schedule.rows
        assert list(inside.values()) == each.running or set(inside) == {r.slot for r in each.running}
        for request in each.running:
            assert inside[request.slot] is request
            assert each.places[request.slot] < each.seen <= 52
        for request in each.admitted:
            assert request.slot not in inside
            inside[request.slot] = request
        assert len(inside) == schedule.rows  # a free slot is taken in the next pass
        for request in each.completed:
            del inside[request.slot]
            assert request.planned == request.answer
        assert len(each.sent) == len(each.completed)
        admitted += each.admitted
        completed += each.completed
        came += each.sent
    assert [id(r) for r in admitted] == [id(r) for r in came[: len(admitted)]]
    assert len(completed) > 2 * schedule.rows
    assert len(came) - len(completed) == concurrency


def test_a_request_goes_through_the_cache_place_by_place():
    schedule = scheduling.Schedule([scheduling.Request(0, prompt=5, answer=4)], 1, 1, 9)
    passes = list(islice(schedule.passes(), 5))
    assert [len(each.admitted) for each in passes] == [1, 0, 0, 0, 1]
    assert [each.places for each in passes[1:4]] == [[5], [6], [7]]
    assert [len(each.completed) for each in passes] == [0, 0, 0, 1, 0]


def test_every_turn_completes_as_many_requests_as_there_are_rows():
    schedule = scheduling.Schedule(scheduling.requests(50, 40, 12, seed=0), 4, 4, 52)
    for turn in islice(schedule.turns(), 20):
        complete = [len(each.completed) for each in turn]
        assert sum(complete) - complete[-1] < 4 <= sum(complete)


def test_times_are_given_for_every_first_and_every_other_token(text):
    options = llm.options_of(["--mode", "serve", "--concurrency", "6"])
    mode = claims.modes.serve(options, model_of("llama-1b"), text)
    with torch.inference_mode():
        for turn in islice(mode.steps, 2):
            given = mode.do(turn)
            assert sum("ttft_ms" in each for each in given) == sum(len(each.admitted) for each in turn)
            assert sum("itl_ms" in each for each in given) == sum(bool(each.running) for each in turn)
            assert all(value > 0 for each in given for value in each.values())
            assert mode.items(turn) == sum(each.tokens for each in turn)
            for request in (r for each in turn for r in each.completed):
                assert len(request.tokens) == request.answer


def test_the_arithmetic_of_an_item_is_the_mean_over_a_round(text):
    options, made = llm.options_of([]), model_of("llama-1b")
    mode = claims.modes.decode(options, made, text)
    first, numbers = claims.modes.per_item(options, mode)
    middle = options.prompt_length + (options.answer_length + 1) / 2
    assert first == pytest.approx(claims.modes.arithmetic.decode(made.shape, middle))
    cached = made.shape.layers * 2 * made.shape.kv_heads * made.shape.head_width * (middle + 1)
    weights = claims.parameter_count(made) / options.batch_size + made.shape.width
    assert numbers == pytest.approx(weights + cached)
    assert next(mode.steps) == options.prompt_length
    options.mode = "serve"
    serving, _ = claims.modes.per_item(options, claims.modes.serve(options, made, text))
    assert serving > first  # prompts are read for the answers


def test_what_does_not_fit_is_refused(capsys):
    with pytest.raises(SystemExit):
        llm.options_of(["--prompt-length", "250"])
    assert "256 is the most at size tiny" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        llm.options_of(["--answer-length", "1"])
    assert "an answer 2 or more" in capsys.readouterr().err
    full = llm.options_of(["--size", "full", "--model", "gpt2"])
    assert (full.precision, full.concurrency) == ("bf16", 32)
