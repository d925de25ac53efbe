"""Energies against closed forms, quadrature and finite differences."""

from functools import partial
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import integrate, stats

from multicause.arrays import double_precision
from multicause.energies import Energy, EnergyTarget, Expert, FunctionExpert, Logistic, Student, check_expert
from multicause.energies.frame import frame_of
from multicause.energies.network import NONLINEARITIES
from multicause.energies.propriety import is_strong
from multicause.samplers import ExactGradient, Hamiltonian
from multicause.samplers.base import initial_state
from multicause.samplers.hamiltonian import leapfrog
from multicause.solvers.contrastive_divergence import Method, Rates, first_state, gradients, update

EXPERTS = [Logistic(), Student(exponent=1.7)]
# Probability below which a distribution counts as wrong; a right one fails once in a hundred thousand runs.
RARE = 1e-5
INITIAL = jax.jit(Energy.initial, static_argnums=(0, 2))


def model(units, dimensions, expert, seed=0, sizes=(), nonlinearity="sigmoid", background=0.7):
    """An energy with random parameters, in double precision; to be called in that scope."""
    random = np.random.RandomState(seed)
    energy = Energy(expert, nonlinearity)
    filters = jnp.asarray(random.normal(size=(units, dimensions)))
    return energy, INITIAL(energy, filters, sizes, background, jax.random.key(seed))


def differences(function, tree, step=1e-5):
    """Central differences of a function of a record in each of its numbers, in one compiled program."""

    @jax.jit
    def both(tree):
        numbers, rebuild = ravel_pytree(tree)
        moves = step * jnp.eye(len(numbers))
        return jax.lax.map(lambda move: (function(rebuild(numbers + move)), function(rebuild(numbers - move))), moves)

    ahead, behind = map(np.asarray, both(tree))
    return (ahead - behind) / (2 * step)


def flat(tree):
    """All numbers of a record, as one array of NumPy."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def plane(reach=60, n=1201):
    """Places in two dimensions, denser near the centre, and the area that each stands for."""
    t = np.linspace(-1, 1, n)
    line, density = reach * np.sinh(5 * t) / np.sinh(5), reach * 5 * np.cosh(5 * t) / np.sinh(5) * (t[1] - t[0])
    Z = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    return Z, np.outer(density, density).ravel()


@pytest.mark.parametrize("expert", EXPERTS, ids=str)
def test_experts_are_known_densities(expert):
    h = np.linspace(-30, 30, 41)
    with double_precision():
        shape = expert.initial(1, float)
        energies = jax.jit(lambda h: expert.energy(h, shape) + expert.log_partition(shape, 1, float))(h[:, None])
        log_density = -np.asarray(energies)[:, 0]
    freedom = 2 * 1.7 - 1
    reference = stats.logistic if isinstance(expert, Logistic) else stats.t(freedom, scale=1 / np.sqrt(freedom))
    np.testing.assert_allclose(log_density, reference.logpdf(h), rtol=1e-12)
    with double_precision():
        drawn = np.asarray(jax.jit(lambda key: expert.draw(key, shape, 4000, 1, float))(jax.random.key(0)))[:, 0]
    assert stats.kstest(drawn, reference.cdf).pvalue > RARE


def test_the_logistic_energy_neither_overflows_nor_loses_its_slope():
    energy = jax.jit(lambda h: Logistic().energy(h, {}))
    slope_of = jax.jit(jax.grad(lambda h: Logistic().energy(h, {}).sum()))
    with double_precision():
        for dtype in (jnp.float32, jnp.float64):
            h = jnp.asarray([-1e30, -800.0, 0.0, 800.0, 1e30], dtype)
            value = energy(h)
            np.testing.assert_allclose(value, [1e30, 800, np.log(4), 800, 1e30], rtol=1e-6)
            assert value.dtype == dtype
            np.testing.assert_allclose(slope_of(h), [-1, -1, 0, 1, 1], atol=1e-7)


def test_a_two_layer_energy_computed_by_hand():
    with double_precision():
        energy, parameters = model(2, 2, Student(), sizes=(1,), nonlinearity="log_square")
        parameters = parameters._replace(
            filters=jnp.asarray([[1.0, 0.0], [1.0, 1.0]]),
            layers=(
                parameters.layers[0]._replace(
                    weights=jnp.asarray([[1.0, -2.0]]), thresholds=jnp.asarray([0.0, 1.0]), bias=jnp.asarray([0.5])
                ),
            ),
            shapes=({"exponents": jnp.asarray([1.0, 3.0])}, {"exponents": jnp.asarray([2.0])}),
        )
        found = jax.jit(energy.value)(parameters, jnp.asarray([[2.0, 1.0]]))
    # h¹ = (2, 3); log(1 + (h − θ)²) = (log 5, log 5); h² = log 5 − 2 log 5 + 1/2.
    expected = np.log(5) + 3 * np.log(10) + 2 * np.log1p((0.5 - np.log(5)) ** 2)
    np.testing.assert_allclose(found, [expected], rtol=1e-13)


@pytest.mark.parametrize(
    ("expert", "units", "sizes", "nonlinearity"),
    [
        (Logistic(), 2, (), "sigmoid"),
        (Student(exponent=1.7), 5, (), "sigmoid"),
        *((Student(exponent=1.7), 4, (3, 2), name) for name in NONLINEARITIES),
    ],
)
def test_gradients_against_finite_differences(expert, units, sizes, nonlinearity, seed):
    """∂E/∂z and ∂E/∂θ, for fewer and more units than the three dimensions, and for three layers."""
    with double_precision():
        energy, parameters = model(units, 3, expert, seed, sizes, nonlinearity)
        Z = np.random.RandomState(seed + 1).normal(size=(4, 3))
        slopes, by_rule = jax.jit(jax.grad(lambda Z, p: energy.value(p, Z).sum(), argnums=(0, 1)))(Z, parameters)
        frame = jax.jit(energy.frame)(parameters)
        basis = np.eye(3) if frame is None else np.asarray(frame.basis)
        of_rows = np.asarray(jax.jit(partial(energy.in_frame, parameters, frame))(Z @ basis)[1]) @ basis.T
        both = differences(lambda both: energy.value(both[1], both[0]).sum(), (Z, parameters))
        np.testing.assert_allclose(flat((slopes, by_rule)), both, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(of_rows, slopes, rtol=1e-12)
        if expert.elementwise:
            of_columns = jax.jit(partial(energy.gradient_of_columns, parameters, frame))
            np.testing.assert_allclose(basis @ np.asarray(of_columns((Z @ basis).T)), slopes.T, rtol=1e-12)


@pytest.mark.parametrize("units", [2, 3])
def test_trajectories_in_rows_and_columns_are_the_same(units, seed):
    with double_precision():
        energy, parameters = model(units, 3, Logistic(), seed)
        target = EnergyTarget(energy, parameters, jax.jit(energy.frame)(parameters))
        assert target.gradient_of_columns is not None
        position, momentum = np.random.RandomState(seed + 1).normal(size=(2, 4, 3))
        state = jax.jit(partial(initial_state, target))(position)
        move = jax.jit(leapfrog, static_argnums=(3, 4))
        in_columns = move(state, momentum, 0.1, target, 5)
        np.testing.assert_allclose(jax.jit(target)(position)[1], state.gradient)  # it can be compiled, as any target
        in_rows = move(state, momentum, 0.1, partial(energy.in_frame, parameters, target.frame), 5)
        np.testing.assert_allclose(flat(in_columns), flat(in_rows), rtol=1e-11)


class Steeper(Logistic):
    """An expert of a user's own, whose energy depends on the unit."""

    def energy(self, activity, shape):
        return super().energy(activity, shape) * jnp.arange(1, activity.shape[1] + 1)


@pytest.mark.parametrize(
    ("expert", "units", "sizes"),
    [(Logistic(), 33, ()), (Student(), 2, ()), (Logistic(), 2, (2,)), (Steeper(), 2, ())],
    ids=str,
)
def test_columns_are_used_only_where_they_are_faster(expert, units, sizes):
    energy, parameters = model(units, 40, expert, 0, sizes)
    assert EnergyTarget(energy, parameters, jax.jit(energy.frame)(parameters)).gradient_of_columns is None


@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("expert", [Logistic(), Student(exponent=2.5)], ids=str)
def test_the_partition_function_against_quadrature(expert, units, seed):
    """One and two units in two dimensions; the undercomplete model has a Gaussian background."""
    with double_precision():
        energy, parameters = model(units, 2, expert, seed)
        if units == 2:  # filters that are nearly parallel make a density that is longer than the plane
            parameters = parameters._replace(filters=np.eye(2) + 0.3 * np.asarray(parameters.filters) / 3)
        places, areas = plane()
        mass = (np.exp(-np.asarray(jax.jit(energy.value)(parameters, places))) * areas).sum()
        np.testing.assert_allclose(jax.jit(energy.log_partition)(parameters), np.log(mass), atol=2e-4)


def exact_gradient(energy, parameters, Z, shares):
    method = Method(energy, ExactGradient(), 1, False)
    state = jax.jit(partial(first_state, method), static_argnums=1)(parameters, 1)
    return jax.jit(partial(gradients, method))(state, Z, shares, jax.random.key(0))[0]


@pytest.mark.parametrize("units", [2, 3])
@pytest.mark.parametrize("expert", EXPERTS, ids=str)
def test_the_exact_gradient_against_finite_differences_of_the_log_likelihood(expert, units, seed):
    with double_precision():
        energy, parameters = model(units, 3, expert, seed)
        Z = jnp.asarray(np.random.RandomState(seed).normal(size=(20, 3)))
        shares = jnp.asarray(np.random.RandomState(seed).dirichlet(np.ones(20)))
        found = exact_gradient(energy, parameters, Z, shares)

        def negative_log_likelihood(parameters):
            return (shares * energy.value(parameters, Z)).sum() + energy.log_partition(parameters)

        expected = differences(negative_log_likelihood, parameters)
        # The last number is the precision of the background, which is not learned.
        np.testing.assert_allclose(flat(found)[:-1], expected[:-1], rtol=1e-6, atol=1e-8)


def test_the_exact_gradient_of_ica_is_bell_and_sejnowskis(seed):
    """∂/∂W (⟨E⟩ + log Z) = ⟨tanh(h/2) zᵀ⟩ − W⁻ᵀ (EBM01 eq. 6)."""
    with double_precision():
        energy, parameters = model(4, 4, Logistic(), seed)
        Z = np.random.RandomState(seed).normal(size=(50, 4))
        found = exact_gradient(energy, parameters, Z, np.full(50, 0.02))
        W = np.asarray(parameters.filters)
        expected = np.tanh(Z @ W.T / 2).T @ Z / 50 - np.linalg.inv(W).T
        np.testing.assert_allclose(found.filters, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("units", [2, 3])
def test_independent_draws_have_the_models_distribution(units, seed):
    with double_precision():
        energy, parameters = model(units, 3, Logistic(), seed, background=4.0)
        Z = np.asarray(jax.jit(partial(energy.draw, n_samples=4000))(jax.random.key(seed), parameters))
        activity = Z @ np.asarray(parameters.filters).T
    for j in range(units):
        assert stats.kstest(activity[:, j], stats.logistic.cdf).pvalue > RARE
    if units == 2:
        unseen = np.linalg.svd(np.asarray(parameters.filters))[2][2]
        assert stats.kstest(Z @ unseen, stats.norm(scale=0.5).cdf).pvalue > RARE
        assert abs(np.corrcoef(Z @ unseen, activity[:, 0])[0, 1]) < 4.5 / np.sqrt(4000)


def test_an_exponent_stays_where_there_is_a_density():
    with double_precision():
        for units, least in ((2, 0.501), (3, 0.0)):
            energy, parameters = model(units, 2, Student())
            low = parameters._replace(shapes=({"exponents": np.full(units, -1.0)},))
            np.testing.assert_allclose(jax.jit(energy.constrain)(low).shapes[0]["exponents"], least)


def test_the_students_partition_function_is_its_integral():
    log_partition = jax.jit(lambda shape: Student().log_partition(shape, 1, float))
    for exponent in (0.6, 1.0, 3.3):
        with double_precision():
            found = float(log_partition({"exponents": jnp.asarray([exponent])})[0])
        integral = 2 * integrate.quad(lambda h, g=exponent: (1 + h**2) ** -g, 0, np.inf)[0]
        assert found == pytest.approx(np.log(integral), abs=1e-6)


# ------------------------------------------------------------------------------------------------ a user's experts


def soft_size(h):
    return jnp.sqrt(1 + h**2)


class WithRule(Expert):
    """An expert whose derivative is wrong by a factor."""

    def energy(self, activity, shape):
        return jax.lax.stop_gradient(activity) * activity


class Scaled(Expert):
    """A Gaussian expert with a learned precision; the settings break one thing each."""

    def __init__(self, fault=""):
        self.fault = fault

    def initial(self, n_units, dtype):
        return {"precision": jnp.full(n_units + (self.fault == "initial"), 2.0, dtype)}

    def energy(self, activity, shape):
        precision = shape["precision"]
        frozen = jax.lax.stop_gradient(precision)
        return precision * (frozen if self.fault == "shape" else precision) * activity**2 / 8

    def log_partition(self, shape, n_units, dtype):
        right = jnp.log(jnp.sqrt(8 * jnp.pi) / shape["precision"])
        return right[:1] if self.fault == "log_partition" else right + (self.fault == "integral")

    def draw(self, key, shape, n_samples, n_units, dtype):
        size = (n_units, n_samples) if self.fault == "draw" else (n_samples, n_units)
        return jax.random.normal(key, size, dtype)


class Odd(Scaled):
    """Learned numbers that are no arrays."""

    def initial(self, n_units, dtype):
        return {"precision": 2.0}


def test_a_constant_of_double_precision_leaves_the_model_in_single():
    with double_precision():
        energy = Energy(FunctionExpert(lambda h: np.float64(0.5) * h**2))
        parameters = INITIAL(energy, np.eye(2, dtype=np.float32), (), 1.0, jax.random.key(0))
        assert jax.jit(energy.value)(parameters, np.ones((3, 2), np.float32)).dtype == jnp.float32


def test_a_good_expert_passes():
    check_expert(Scaled())
    for exponent in (0.6, 1.0, 4.0):
        check_expert(Student(exponent=exponent))
    check_expert(FunctionExpert(soft_size))
    check_expert(FunctionExpert(jnp.abs))  # a kink is no error
    check_expert(Logistic())
    check_expert(Student())


@pytest.mark.parametrize(
    ("expert", "text"),
    [
        (
            FunctionExpert(lambda h: (h**2).sum(axis=1)),
            r"one energy per activity, an array of shape \(12, 2\); got \(12,\)",
        ),
        (FunctionExpert(lambda h: 3.0), "one energy per activity.*got float"),
        (FunctionExpert(lambda h: h > 0), "floating-point energies; got dtype bool"),
        (FunctionExpert(jnp.log), "must be finite for every activity; at -5.3 it is nan"),
        (FunctionExpert(lambda h: h**2 / h.max()), "each activity on its own"),
        (FunctionExpert(np.sqrt), "failed|must be finite"),
        (FunctionExpert(lambda h: h**2 * (1 + h[:, ::-1] ** 2)), "change with the activities of other units"),
        (Scaled("initial"), r"a dict of arrays with one number per unit; initial\(2, dtype\) returned"),
        (Odd(), "a dict of arrays with one number per unit"),
        (Scaled("shape"), "The derivative of The expert 'Scaled' in 'precision' at 2 is"),
        (Scaled("log_partition"), r"finite numbers of shape \(2,\) from log_partition, for two units; got"),
        (Scaled("draw"), r"finite numbers of shape \(3, 2\) from draw, for two units and three samples"),
        (Scaled("integral"), "returns 1.9189.* but quadrature gives 0.9189"),
        (WithRule(), "The derivative of The expert 'WithRule' at .*by automatic differentiation and .* by finite"),
    ],
)
def test_a_bad_expert_is_refused(expert, text):
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=text):
        check_expert(expert)


def strength(filters, exponents):
    """min_A Σ_{i not in A} x_i / (R − rank(A)) over all sets A of filters that do not span the space."""
    H, R = filters.shape
    sets = [list(A) for size in range(H + 1) for A in combinations(range(H), size)]
    ranks = [np.linalg.matrix_rank(filters[A]) if A else 0 for A in sets]
    totals = [exponents.sum() - exponents[A].sum() for A in sets]
    return min(total / (R - rank) for total, rank in zip(totals, ranks, strict=True) if rank < R)


@pytest.mark.parametrize("generic", [True, False])
def test_integrability_against_all_sets_of_filters(generic, seed):
    """Filters in general position, and filters of small whole numbers, many of which are parallel or coplanar."""
    random, found = np.random.RandomState(seed), []
    while len(found) < 40:
        R = random.randint(1, 5)
        H = R + random.randint(0, 5)
        filters = random.normal(size=(H, R)) if generic else random.randint(-1, 2, (H, R)).astype(float)
        if np.linalg.matrix_rank(filters) == R:
            exponents = random.uniform(0, 2.2, H) * random.choice([1, R / H])
            found.append((is_strong(filters, exponents, 2e-16), strength(filters, exponents) > 1))
    assert all(one == other for one, other in found)
    assert {one for one, _ in found} == {True, False}


def test_integrability_in_closed_form():
    """∫ (1 + z²)^{−γ} dz is finite for γ > ½, whether one filter or several make up γ; so is each direction's."""
    for n in (1, 3):
        assert is_strong(np.ones((n, 1)), np.full(n, 1.001 / n), 2e-16)
        assert not is_strong(np.ones((n, 1)), np.full(n, 1 / n), 2e-16)
    parallel = np.array([[1.0, 2.0], [-2.0, -4.0], [1.0, 0.0]])
    assert is_strong(parallel, np.array([0.6, 0.6, 1.01]), 2e-16)
    assert not is_strong(parallel, np.array([5.0, 5.0, 0.99]), 2e-16)  # along the direction that only the third sees
    many = np.random.RandomState(0).normal(size=(120, 40))
    assert is_strong(many, np.full(120, 1.01 * 40 / 120), 2e-16)
    assert not is_strong(many, np.full(120, 0.99 * 40 / 120), 2e-16)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_frame_of_filters_is_their_qr_decomposition(dtype, seed):
    """One of the filters is 1e4 times as long as another, and two are nearly parallel."""
    filters = np.random.RandomState(seed).normal(size=(4, 7)) * [[1e2], [1], [1e-2], [1]]
    filters[3] = filters[1] + 1e-2 * filters[3]
    precision = float(np.finfo(dtype).eps)
    with double_precision():
        basis, triangle, inverse = map(np.asarray, jax.jit(frame_of)(jnp.asarray(filters, dtype)))
    np.testing.assert_allclose(basis.T @ basis, np.eye(7), atol=20 * precision)
    np.testing.assert_allclose(basis[:, :4] @ triangle, filters.T, rtol=1e-3, atol=100 * 20 * precision)
    np.testing.assert_array_equal(triangle, np.triu(triangle))
    np.testing.assert_allclose(inverse @ triangle, np.eye(4), atol=1e8 * precision)


@pytest.mark.parametrize("units", [2, 3, 4])
def test_updates_do_without_lapack(units):
    """In a loop over small matrices, the threads of LAPACK take most of the time."""
    with double_precision():
        energy, parameters = model(units, 3, Logistic(), 0)
        method = Method(energy, Hamiltonian(), 1, False)
        state, rates = first_state(method, parameters, 5), Rates(*jnp.ones(4))
        arguments = (state, jnp.ones((5, 3)), jnp.ones(5), rates, jax.random.key(0))
        text = jax.jit(partial(update, method)).lower(*arguments).as_text()
    assert "tanh" in text
    assert "lapack" not in text
