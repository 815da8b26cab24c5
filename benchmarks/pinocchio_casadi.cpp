// Dynamics and their derivatives of a model of Pinocchio as functions of CasADi, for wheels of
// Pinocchio that leave out pinocchio.casadi: pinocchio_casadi MODEL.txt FOLDER
#include <pinocchio/autodiff/casadi.hpp>
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/serialization.hpp>

#include <string>

using Scalar = casadi::SX;
using Model = pinocchio::ModelTpl<Scalar>;

static Scalar column(const Model::TangentVectorType &x)
{
    Scalar out(x.size(), 1);
    for (Eigen::Index i = 0; i < x.size(); ++i) out(i) = x[i];
    return out;
}

template <typename Matrix> static Scalar matrix(const Matrix &x)
{
    Scalar out(x.rows(), x.cols());
    for (Eigen::Index i = 0; i < x.rows(); ++i)
        for (Eigen::Index j = 0; j < x.cols(); ++j) out(i, j) = x(i, j);
    return out;
}

int main(int, char **argv)
{
    pinocchio::Model numbers;
    pinocchio::serialization::loadFromText(numbers, argv[1]);
    const Model model = numbers.cast<Scalar>();
    const Scalar q = Scalar::sym("q", model.nq), v = Scalar::sym("v", model.nv);
    const Scalar x = Scalar::sym("x", model.nv);
    Model::ConfigVectorType q_(model.nq);
    Model::TangentVectorType v_(model.nv), x_(model.nv);
    for (int i = 0; i < model.nq; ++i) q_[i] = q(i);
    for (int i = 0; i < model.nv; ++i) v_[i] = v(i), x_[i] = x(i);
    Model::Data forward(model), inverse(model);
    pinocchio::aba(model, forward, q_, v_, x_);
    pinocchio::rnea(model, inverse, q_, v_, x_);
    const std::string folder = argv[2];
    casadi::Function("forward_dynamics", {q, v, x}, {column(forward.ddq)})
        .save(folder + "/forward_dynamics.casadi");
    casadi::Function("inverse_dynamics", {q, v, x}, {column(inverse.tau)})
        .save(folder + "/inverse_dynamics.casadi");
    Model::Data first(model), second(model);
    pinocchio::computeABADerivatives(model, first, q_, v_, x_);
    pinocchio::computeRNEADerivatives(model, second, q_, v_, x_);
    casadi::Function("forward_dynamics_derivatives", {q, v, x},
                     {matrix(first.ddq_dq), matrix(first.ddq_dv), matrix(first.Minv)})
        .save(folder + "/forward_dynamics_derivatives.casadi");
    casadi::Function("inverse_dynamics_derivatives", {q, v, x},
                     {matrix(second.dtau_dq), matrix(second.dtau_dv), matrix(second.M)})
        .save(folder + "/inverse_dynamics_derivatives.casadi");
}
