// Which columns a plan's estimates come from: every column of an operator is followed down to the
// scan that reads it. One pass over the plan, its columns copied once per operator. Columns that
// come out of set operations, aggregates and expressions have no origin, as for the planner.
#include "frontend/sql/estimates.h"

#include <algorithm>
#include <map>

namespace rndn::sql {
namespace {

// A column of a table; no scan: it is computed.
struct Origin {
  const Node* scan = nullptr;
  uint32_t column = 0;
};
using Origins = std::vector<Origin>;

bool is_join(const Node& n) { return n.op == Operator::join || n.op == Operator::any_join || n.op == Operator::cross; }

class Estimates {
 public:
  explicit Estimates(const Plan& plan) : plan_(plan) {}

  std::map<std::string, std::set<std::string>> all() {
    leaving(plan_.root, false);
    return std::move(decisive_);
  }

 private:
  void decide(const Origin& o) {
    if (o.scan && o.column < o.scan->names.count) decisive_[o.scan->table].insert(plan_.of(o.scan->names)[o.column]);
  }
  // All columns that the expression reads.
  void decide(ExpressionId id, const Origins& in) {
    const Expression& e = plan_[id];
    if (e.kind == Expression::column && e.index < in.size()) decide(in[e.index]);
    if (e.kind != Expression::column)
      for (ExpressionId argument : plan_.of(e.arguments)) decide(argument, in);
  }
  // The same of a condition, but where it leaves a fixed part of the rows.
  void filter(ExpressionId id, const Origins& in) {
    const Expression& e = plan_[id];
    if (e.kind == Expression::call) switch (e.function) {
        case Function::and_:
          for (ExpressionId argument : plan_.of(e.arguments)) filter(argument, in);
          return;
        case Function::or_:
        case Function::not_:
        case Function::not_equal:
        case Function::less:
        case Function::greater:
        case Function::at_most:
        case Function::at_least:
        case Function::between:
        case Function::in:
        case Function::not_in:
        case Function::like:
        case Function::not_like:
        case Function::contains:
        case Function::prefix:
        case Function::suffix: return;
        default: break;
      }
    decide(id, in);
  }

  static Origins projected(const Origins& in, bool projects, std::span<const uint32_t> map) {
    if (!projects) return in;
    Origins out;
    for (uint32_t i : map) out.push_back(i < in.size() ? in[i] : Origin{});
    return out;
  }

  Origins join(const Node& n, Origins left, const Origins& right) {
    for (const Condition& c : plan_.of(n.conditions)) {
      decide(c.left, left);
      decide(c.right, right);
    }
    Origins both = left;
    both.insert(both.end(), right.begin(), right.end());
    for (ExpressionId e : plan_.of(n.expressions)) filter(e, both);
    left = projected(left, n.projects, plan_.of(n.projection));
    Origins others = projected(right, n.right_projects, plan_.of(n.right_projection));
    switch (n.join) {
      case JoinType::semi:
      case JoinType::anti: return left;
      case JoinType::right_semi:
      case JoinType::right_anti: return others;
      case JoinType::mark: left.push_back({}); return left;
      default: left.insert(left.end(), others.begin(), others.end()); return left;
    }
  }

  Origins scan(const Node& n, bool joined) {
    if (n.table.empty()) return Origins(n.columns.count);
    Origins in;
    for (uint32_t column : plan_.of(n.columns)) in.push_back({&n, column});
    if (joined) {
      decisive_[n.table];
      for (ExpressionId e : plan_.of(n.expressions)) filter(e, in);
    }
    return projected(in, n.projects, plan_.of(n.projection));
  }

  // The columns that leave an operator; `joined`: by what is above, where its rows count.
  Origins leaving(NodeId id, bool joined) {
    const Node& n = plan_[id];
    const std::span<const NodeId> children = plan_.of(n.children);
    if (n.op == Operator::cte) {
      ctes_[n.cte] = leaving(children[0], std::any_of(plan_.nodes.begin(), plan_.nodes.end(), is_join));
      return leaving(children[1], joined);
    }
    Origins in = children.empty() ? Origins() : leaving(children[0], joined || is_join(n));
    switch (n.op) {
      case Operator::scan: return scan(n, joined);
      case Operator::join:
      case Operator::any_join:
      case Operator::asof_join:
      case Operator::cross: return join(n, std::move(in), leaving(children[1], true));
      case Operator::filter:
        if (!joined) break;
        for (ExpressionId e : plan_.of(n.expressions)) filter(e, in);
        break;
      case Operator::project: {
        Origins out;
        for (ExpressionId e : plan_.of(n.expressions)) {
          const bool is_column = plan_[e].kind == Expression::column && plan_[e].index < in.size();
          out.push_back(is_column ? in[plan_[e].index] : Origin{});
        }
        return out;
      }
      case Operator::aggregate: {
        Origins out;
        for (ExpressionId e : plan_.of(n.groups)) {
          if (joined) decide(e, in);
          const bool is_column = plan_[e].kind == Expression::column && plan_[e].index < in.size();
          out.push_back(is_column ? in[plan_[e].index] : Origin{});
        }
        out.resize(out.size() + n.expressions.count + n.grouping_count);
        return out;
      }
      case Operator::distinct:
        if (!joined) break;
        for (ExpressionId e : plan_.of(n.groups)) decide(e, in);
        break;
      case Operator::positional: {
        const Origins right = leaving(children[1], joined);
        in.insert(in.end(), right.begin(), right.end());
        return in;
      }
      case Operator::unnest: {
        Origins out = projected(in, n.projects, plan_.of(n.projection));
        out.resize(out.size() + n.lists.count / 2);
        return out;
      }
      case Operator::window: in.resize(in.size() + n.expressions.count); break;
      case Operator::union_:
      case Operator::except:
      case Operator::intersect:
        for (NodeId child : children.subspan(1)) leaving(child, joined);
        return Origins(in.size());
      case Operator::cte_ref: return ctes_[n.cte];
      case Operator::one_row: return Origins(1);
      case Operator::no_rows:
      case Operator::values: return Origins(n.types.count);
      case Operator::order:
      case Operator::top:
      case Operator::limit:
      case Operator::cte: break;
    }
    return projected(in, n.projects, plan_.of(n.projection));
  }

  const Plan& plan_;
  std::map<std::string, std::set<std::string>> decisive_;
  std::map<uint32_t, Origins> ctes_;
};

}  // namespace

std::map<std::string, std::set<std::string>> estimated_by(const Plan& plan) { return Estimates(plan).all(); }

}  // namespace rndn::sql
