package orders;

/** An order; its message has the id as key, and the quantity and the article as value. */
public record Order(String id, int quantity, String article) {

  /**
   * Reads a message, such as {@code 2 fence posts}.
   *
   * @throws IllegalArgumentException when it says something else
   */
  static Order parse(String key, String value) {
    String[] words = value == null ? new String[0] : value.split(" ", 2);
    if (key == null || words.length < 2) {
      throw new IllegalArgumentException("a quantity and an article are needed: " + value);
    }
    return new Order(key, Integer.parseInt(words[0]), words[1]);
  }

  String value() {
    return quantity + " " + article;
  }
}
