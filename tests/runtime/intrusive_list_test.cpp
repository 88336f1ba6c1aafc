// Goal: order, constant-time leaving, several memberships, and the checks against dying on a list.
#include "weft/runtime/intrusive_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace weft {
namespace {

struct Other;
struct Node : ListHook<>, ListHook<Other> {
  explicit Node(int node_value = 0) : value(node_value) {}
  int value;
};
using Nodes = IntrusiveList<Node>;

std::vector<int> values_of(Nodes& list) {
  std::vector<int> values;
  for (Node* node = list.first(); node != nullptr; node = list.next(*node)) values.push_back(node->value);
  return values;
}
void clear(Nodes& list) {
  while (list.pop_front() != nullptr) {
  }
}

TEST(IntrusiveList, KeepsOrder) {
  Node a(1);
  Node b(2);
  Node c(3);
  Nodes list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.first(), nullptr);
  EXPECT_EQ(list.pop_front(), nullptr);
  list.push_back(b);
  list.push_back(c);
  list.push_front(a);
  EXPECT_EQ(values_of(list), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(&list.front(), &a);
  Nodes::erase(b);
  EXPECT_FALSE(b.ListHook<>::linked());
  EXPECT_EQ(values_of(list), (std::vector<int>{1, 3}));
  EXPECT_EQ(list.pop_front(), &a);
  EXPECT_EQ(list.pop_front(), &c);
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveList, AnObjectMayBeOnTwoListsOfDifferentTags) {
  Node a(1);
  Nodes list;
  IntrusiveList<Node, Other> other;
  list.push_back(a);
  other.push_back(a);
  Nodes::erase(a);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(other.pop_front(), &a);
}

TEST(IntrusiveList, SplicesToTheEnd) {
  Node a(1);
  Node b(2);
  Node c(3);
  Nodes list;
  Nodes other;
  list.splice_back(other);
  EXPECT_TRUE(list.empty());
  other.push_back(b);
  other.push_back(c);
  list.push_back(a);
  list.splice_back(other);
  EXPECT_TRUE(other.empty());
  EXPECT_EQ(values_of(list), (std::vector<int>{1, 2, 3}));
  other.splice_back(list);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(values_of(other), (std::vector<int>{1, 2, 3}));
  clear(other);
}

TEST(IntrusiveList, AgreesWithADequeUnderRandomUse) {
  std::minstd_rand random(3);
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 50; ++i) nodes.push_back(std::make_unique<Node>(i));
  Nodes list;
  std::deque<int> reference;
  for (int step = 0; step < 20'000; ++step) {
    Node& node = *nodes[random() % nodes.size()];
    if (node.ListHook<>::linked()) {
      Nodes::erase(node);
      reference.erase(std::find(reference.begin(), reference.end(), node.value));
    } else if (random() % 2 == 0) {
      list.push_back(node);
      reference.push_back(node.value);
    } else {
      list.push_front(node);
      reference.push_front(node.value);
    }
    if (step % 100 == 0) {
      EXPECT_EQ(values_of(list), std::vector<int>(reference.begin(), reference.end()));
    }
  }
  clear(list);
}

TEST(IntrusiveListDeathTest, NeitherListNorObjectMayDieWhileLinked) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Nodes list;
        Node node;
        list.push_back(node);
      },
      "an object died while it was still on an intrusive list");
  EXPECT_DEATH(
      {
        Node node;
        Nodes list;
        list.push_back(node);
      },
      "died while objects were still waiting on it");
}

}  // namespace
}  // namespace weft
